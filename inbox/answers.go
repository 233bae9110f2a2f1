package inbox

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// ask calls a verb as a principal.
func ask[Q, A any](ctx context.Context, i *Inbox, as performatives.Agent, verb api.VerbOf[Q, A], request Q) (answer A, err error) {
	err = i.Service.As(as).Call(ctx, verb.Verb, request, &answer)
	return answer, err
}

// answer writes a reply or a refusal.
func (i *Inbox) answer(w http.ResponseWriter, r *http.Request, answer any, err error) {
	if err != nil {
		var refusal *session.Refusal
		if !errors.As(err, &refusal) {
			i.fault(r, err)
			refusal = session.Refuse(session.Unavailable, "an internal error occurred; try again")
		}
		i.refuse(w, r, refusal, refusal.Code.Status())
		return
	}
	i.json(w, http.StatusOK, answer)
}

func refusalOf(err error) (*session.Refusal, bool) { return errors.AsType[*session.Refusal](err) }

func refused(err error) bool {
	_, is := refusalOf(err)
	return is
}

func isCode(err error, code session.Code) bool {
	refusal, is := refusalOf(err)
	return is && refusal.Code == code
}

func (i *Inbox) refuse(w http.ResponseWriter, _ *http.Request, refusal *session.Refusal, status int) {
	shown := *refusal
	shown.Message = clean(refusal.Message)
	i.json(w, status, api.Refused(&shown))
}

func (i *Inbox) json(w http.ResponseWriter, status int, answer any) {
	data, err := json.Marshal(answer, json.Deterministic(true))
	if err != nil {
		i.Log.Error("inbox", zap.Error(err))
		status, data = http.StatusServiceUnavailable, []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(data) //nolint:errcheck // the client disconnected
}

// A response smaller than this fits a packet or two anyway.
const worthCompressing = 2 << 10

// send writes a response, compressed if the browser takes that and it is worth it.
func send(w http.ResponseWriter, r *http.Request, status int, data []byte) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	if len(data) >= worthCompressing && takesGzip(r) {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write(data) //nolint:errcheck // to memory
		z.Close()     //nolint:errcheck // to memory
		h.Set("Content-Encoding", "gzip")
		data = packed.Bytes()
	}
	w.WriteHeader(status)
	w.Write(data) //nolint:errcheck // the client disconnected
}

func takesGzip(r *http.Request) bool {
	for encoding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(encoding), ";")
		if name == "gzip" && strings.ReplaceAll(quality, " ", "") != "q=0" {
			return true
		}
	}
	return false
}

//go:embed static/*
var static embed.FS

// assets are the style sheet, the scripts and the icon. Their URLs contain a hash of
// all of them, so that browsers can cache them forever.
type assets struct {
	version string
	files   map[string][]byte
}

func openAssets() *assets {
	a := &assets{files: map[string][]byte{}}
	entries, err := static.ReadDir("static")
	if err != nil {
		panic(err) // they are embedded
	}
	hash := sha256.New()
	for _, e := range entries { // by name
		data, err := static.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err)
		}
		a.files[e.Name()] = data
		hash.Write([]byte(e.Name()))
		hash.Write(data)
	}
	a.version = hex.EncodeToString(hash.Sum(nil)[:6])
	return a
}

// at returns a file's URL relative to the inbox.
func (a *assets) at(name string) string { return "static/" + a.version + "/" + name }

func (a *assets) serve(w http.ResponseWriter, r *http.Request) {
	data, ok := a.files[r.PathValue("name")]
	if !ok || r.PathValue("version") != a.version {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", mime.TypeByExtension(path.Ext(r.PathValue("name"))))
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	send(w, r, http.StatusOK, data)
}
