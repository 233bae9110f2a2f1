// Package interop lets programs of others check what parley makes. It is a module of its
// own, so that parley does not depend on them; .ci/interop runs it.
package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"
)

var (
	rust   = flag.String("rust", "", "the program of rust/, built")
	python = flag.String("python", "", "a Python with requirements.txt")
)

// A broker is parley serve --dev.
type broker struct {
	testing.TB
	program, nats, site string
	stop                func() // interrupts it, and waits for its end
}

func serve(t *testing.T, args ...string) *broker {
	t.Helper()
	b := &broker{TB: t, program: filepath.Join(t.TempDir(), "parley")}
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s", "-o", b.program, "./cmd/parley")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	running := exec.CommandContext(ctx, b.program, append([]string{
		"serve", "--dev", "--sync", "1m", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0",
	}, args...)...)
	running.Cancel = func() error { return running.Process.Signal(os.Interrupt) }
	said, err := running.StderrPipe()
	if err == nil {
		err = running.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for (b.nats == "" || b.site == "") && lines.Scan() {
		for word := range strings.FieldsSeq(lines.Text()) {
			switch {
			case strings.HasPrefix(word, "nats://"):
				b.nats = word
			case strings.HasPrefix(word, "http://") && b.site == "":
				b.site = word
			}
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines.Scan() { // or it stops when the pipe is full
		}
		running.Wait() //nolint:errcheck // it was interrupted
	}()
	b.stop = func() {
		interrupt()
		<-ended
	}
	t.Cleanup(b.stop) // before its data is removed
	return b
}

func (b *broker) parley(args ...string) string {
	b.Helper()
	out, err := b.try(args...)
	if err != nil {
		b.Fatalf("parley %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

func (b *broker) try(args ...string) (string, error) {
	out, err := exec.CommandContext(b.Context(), b.program, append(args, "--url", b.nats)...).Output()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		out = append(out, exit.Stderr...)
	}
	return strings.TrimSpace(string(out)), err
}

// call sends a request over HTTP, and returns a member of the answer.
func (b *broker) call(as, method, path, body, member string) string {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, b.site+"/v1/asp"+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+as)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	var found map[string]any
	if err := json.NewDecoder(answer.Body).Decode(&found); err != nil || answer.StatusCode >= http.StatusBadRequest {
		b.Fatalf("%s %s: %s %v %v", method, path, answer.Status, found, err)
	}
	text, _ := found[member].(string)
	return text
}

// deal is a session with an agreement: two leaves.
func (b *broker) deal(n int) (id string) {
	b.Helper()
	buyer, seller := fmt.Sprintf("agent://acme.com/buyer-%d", n/20), fmt.Sprintf("agent://widgets.co/seller-%d", n/20)
	id = b.call(buyer, http.MethodPost, "/sessions", fmt.Sprintf(`{"with":[%q],"purpose":"cups"}`, seller), "sessionId")
	for _, act := range []struct{ as, body string }{
		{seller, `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`},
		{seller, `{"performative":"PROPOSE","body":{"proposalId":"p1","type":"service-agreement","subject":"cups","terms":{"price":500}}}`},
		{buyer, `{"performative":"ACCEPT","body":{"referenceId":"p1"}}`},
	} {
		b.call(act.as, http.MethodPost, "/sessions/"+id+"/messages", act.body, "")
	}
	b.call(buyer, http.MethodDelete, "/sessions/"+id, `{"outcome":"completed","summary":"agreed"}`, "")
	return id
}

func hashes(bundle []byte) (all [][]byte, err error) {
	var b api.EntryBundle
	if err := b.UnmarshalText(bundle); err != nil {
		return nil, err
	}
	for _, entry := range b.Entries {
		all = append(all, rfc6962.DefaultHasher.HashLeaf(entry))
	}
	return all, nil
}

// TestClients: programs of others accept a log that a broker wrote, and none with a byte changed.
func TestClients(t *testing.T) {
	b := serve(t)
	vkey := b.parley("log", "key")
	key, err := note.NewVerifier(vkey)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(b.site + "/log/")
	if err != nil {
		t.Fatal(err)
	}
	log, err := client.NewHTTPFetcher(at, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	tracker, err := client.NewLogStateTracker(t.Context(), log.ReadTile, nil, key, key.Name(), client.UnilateralConsensus(log.ReadCheckpoint))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 150 {
		b.deal(n)
		for n%30 == 29 && tracker.Latest().Size < 2*uint64(n+1) { // each checkpoint extends the one before
			if _, _, _, err := tracker.Update(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	size := tracker.Latest().Size
	t.Run("tessera", func(t *testing.T) {
		prover, err := client.NewProofBuilder(t.Context(), size, log.ReadTile)
		if err != nil {
			t.Fatal(err)
		}
		for index := uint64(0); index < size; index += 37 {
			bundle, err := client.GetEntryBundle(t.Context(), log.ReadEntryBundle, index/256, size)
			if err != nil {
				t.Fatal(err)
			}
			path, err := prover.InclusionProof(t.Context(), index)
			if err == nil {
				err = proof.VerifyInclusion(rfc6962.DefaultHasher, index, size, rfc6962.DefaultHasher.HashLeaf(bundle.Entries[index%256]), path, tracker.Latest().Hash)
			}
			if err != nil {
				t.Errorf("leaf %d: %v", index, err)
			}
		}
		if err := fsck.New(key.Name(), key, log, hashes, fsck.Opts{N: 2}).Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
	programs := map[string]func(site string) *exec.Cmd{
		"rust": func(site string) *exec.Cmd {
			return exec.CommandContext(t.Context(), *rust, strings.TrimPrefix(site, "http://"), vkey)
		},
		"python": func(site string) *exec.Cmd {
			return exec.CommandContext(t.Context(), *python, "readlog.py", site+"/log", vkey)
		},
	}
	for name, read := range programs {
		t.Run(name, func(t *testing.T) {
			if out, err := read(b.site).CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != strconv.FormatUint(size, 10) {
				t.Errorf("%v: %s", err, out)
			}
			for _, path := range []string{"checkpoint", "tile/0/000", "tile/1/", "tile/entries/001"} {
				if out, err := read(b.changed(path)).CombinedOutput(); err == nil {
					t.Errorf("a byte of %s was changed, and it says: %s", path, out)
				}
			}
		})
	}
}

// changed is a site that serves what the broker does, with the last byte of some paths changed.
func (b *broker) changed(path string) string {
	site, err := url.Parse(b.site)
	if err != nil {
		b.Fatal(err)
	}
	between := httputil.NewSingleHostReverseProxy(site)
	between.ModifyResponse = func(r *http.Response) error {
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.HasPrefix(r.Request.URL.Path, "/log/"+path) || len(body) < 3 {
			r.Body = io.NopCloser(bytes.NewReader(body))
			return err
		}
		body[len(body)-3] ^= 4 // of a checkpoint, in its signature
		r.Body = io.NopCloser(bytes.NewReader(body))
		return nil
	}
	front := httptest.NewServer(between)
	b.Cleanup(front.Close)
	return front.URL
}
