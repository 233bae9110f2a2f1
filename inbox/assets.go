package inbox

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
)

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
