package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/ledger"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/natskit"
)

const origin = "acme.com/log"

var secret = []byte("a secret of the installation")

// A board is where a ledger puts its checkpoints, and what a test waits on.
type board struct {
	mu      sync.Mutex
	changed chan struct{} // closed, and made anew, by each checkpoint
	newest  string
	fails   error
}

func newBoard() *board { return &board{changed: make(chan struct{})} }

func (b *board) Load() (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.newest, nil
}

func (b *board) Save(checkpoint string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails != nil {
		return b.fails
	}
	b.newest = checkpoint
	close(b.changed)
	b.changed = make(chan struct{})
	return nil
}

// A place is a server with a store, for ledgers.
type place struct {
	testing.TB
	ctx    context.Context //nolint:containedctx // the test's own
	server *natskit.Server
	store  *store.Store
}

func newPlace(t testing.TB) *place {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), natskit.Patience)
	t.Cleanup(cancel)
	p := &place{TB: t, ctx: ctx, server: natskit.StartServer(t)}
	p.store = p.newStore()
	return p
}

func (p *place) newStore() *store.Store {
	p.Helper()
	s, err := store.Open(p.ctx, store.Options{Conn: p.server.Connect()})
	natskit.Must(p, err)
	p.Cleanup(s.Close)
	return s
}

// A log is a ledger and its board.
type log struct {
	*ledger.Ledger
	*board
	p    *place
	site *httptest.Server
}

func (p *place) open(b *board, change ...func(*ledger.Options)) *log {
	p.Helper()
	o := ledger.Options{Store: p.newStore(), Secret: secret, Origin: origin, Published: b}
	for _, c := range change {
		c(&o)
	}
	l, err := ledger.Open(p.ctx, o)
	natskit.Must(p, err)
	p.Cleanup(l.Close)
	site := httptest.NewServer(l)
	p.Cleanup(site.Close)
	return &log{l, b, p, site}
}

// append appends leaves, each of its own session.
func (l *log) append(ids ...string) {
	l.p.Helper()
	for _, id := range ids {
		leaf, err := inclusion.Leaf{Type: inclusion.Session, Hash: "sha256:" + id, At: "2026-03-07T14:30:00.000000000Z"}.Bytes()
		natskit.Must(l.p, err)
		natskit.Must(l.p, l.Append(l.p.ctx, inclusion.Session, id, performatives.SessionID(id), leaf))
	}
}

func (l *log) verifier() note.Verifier {
	l.p.Helper()
	v, err := inclusion.ParseKey(l.VerifierKey())
	natskit.Must(l.p, err)
	return v
}

// has waits for a checkpoint of so many leaves.
func (l *log) has(leaves int64) inclusion.Checkpoint {
	l.p.Helper()
	for {
		l.mu.Lock()
		signed, changed := l.newest, l.changed
		l.mu.Unlock()
		if signed != "" {
			c, err := inclusion.Open(signed, l.verifier())
			natskit.Must(l.p, err)
			if c.Tree.N >= leaves {
				return c
			}
		}
		select {
		case <-changed:
		case <-l.p.ctx.Done():
			l.p.Fatalf("no checkpoint of %d leaves; the newest is %q, refused: %v", leaves, signed, l.Refused())
		}
	}
}

// get reads a path of the log.
func (l *log) get(path string) (status int, body []byte, header http.Header) {
	l.p.Helper()
	r, err := http.NewRequestWithContext(l.p.ctx, http.MethodGet, l.site.URL+"/log/"+path, nil)
	natskit.Must(l.p, err)
	answer, err := l.site.Client().Do(r)
	natskit.Must(l.p, err)
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	natskit.Must(l.p, err)
	return answer.StatusCode, body, answer.Header
}

// tiles has tlog read the tiles over HTTP.
type tiles struct{ *log }

func (t tiles) Height() int                     { return 8 }
func (t tiles) SaveTiles([]tlog.Tile, [][]byte) {}
func (t tiles) ReadTiles(all []tlog.Tile) (data [][]byte, err error) {
	for _, tile := range all {
		status, body, _ := t.get(strings.Replace(tile.Path(), "tile/8/", "tile/", 1))
		if status != http.StatusOK {
			return nil, fmt.Errorf("%s: %d %s", tile.Path(), status, body)
		}
		data = append(data, body)
	}
	return data, nil
}

func names(from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf("s%05d", i))
	}
	return all
}

// TestLog: every leaf is in the log once, in the stream's order, and proven: by the ledger,
// and by a client that reads the tiles.
func TestLog(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	l := p.open(newBoard())
	if c := l.has(0); c.Origin != origin || c.Tree.N != 0 {
		t.Errorf("the empty log has the checkpoint %+v", c)
	}
	all := names(0, 600)
	l.append(all...)
	l.append(all...) // again: nothing happens
	c := l.has(600)
	if c.Tree.N != 600 {
		t.Fatalf("the log has %d leaves", c.Tree.N)
	}
	reader := tlog.TileHashReader(c.Tree, tiles{l})
	for _, i := range []int64{0, 255, 256, 511, 512, 599} {
		proof, err := l.Proof(p.ctx, inclusion.Session, all[i])
		natskit.Must(t, err)
		if proof == nil || proof.Index != i {
			t.Fatalf("leaf %d: %+v", i, proof)
		}
		natskit.Must(t, proof.Verify(l.verifier()))
		path, err := tlog.ProveRecord(c.Tree.N, i, reader)
		natskit.Must(t, err)
		natskit.Must(t, tlog.CheckRecord(path, c.Tree.N, c.Tree.Hash, i, tlog.RecordHash(proof.Leaf)))
		other := *proof
		other.Leaf = []byte(strings.Replace(string(proof.Leaf), "s0", "s1", 1))
		if other.Verify(l.verifier()) == nil {
			t.Errorf("leaf %d can be another", i)
		}
	}
	if session, err := l.SessionOf(p.ctx, inclusion.Session, all[7]); err != nil || string(session) != all[7] {
		t.Errorf("the leaf is of session %q, %v", session, err)
	}
	if proof, err := l.Proof(p.ctx, inclusion.Session, "unknown"); proof != nil || err != nil {
		t.Errorf("what is not in the log has the proof %v, %v", proof, err)
	}
}

// TestTiles: paths, bodies and headers are those of tlog-tiles.
func TestTiles(t *testing.T) {
	t.Parallel()
	l := newPlace(t).open(newBoard())
	l.append(names(0, 300)...)
	l.has(300)
	for path, want := range map[string]struct {
		bytes         int
		kind, caching string
	}{
		"checkpoint":            {-1, "text/plain; charset=utf-8", "no-cache"},
		"tile/0/000":            {256 * 32, "application/octet-stream", "public, max-age=31536000, immutable"},
		"tile/0/001.p/44":       {44 * 32, "application/octet-stream", "public, max-age=31536000, immutable"},
		"tile/0/001.p/2":        {2 * 32, "application/octet-stream", "public, max-age=31536000, immutable"},
		"tile/1/000.p/1":        {32, "application/octet-stream", "public, max-age=31536000, immutable"},
		"tile/entries/000":      {-1, "application/octet-stream", "public, max-age=31536000, immutable"},
		"tile/entries/001.p/44": {-1, "application/octet-stream", "public, max-age=31536000, immutable"},
		"tile/0/001":            {0, "", "no-store"},
		"tile/0/001.p/45":       {0, "", "no-store"},
		"tile/1/000.p/2":        {0, "", "no-store"},
		"tile/2/000.p/1":        {0, "", "no-store"},
		"tile/63/000.p/1":       {0, "", "no-store"},
		"tile/64/000.p/1":       {0, "", "no-store"},
		"tile/0/0":              {0, "", "no-store"},
		"tile/0/x000/000":       {0, "", "no-store"},
		"tile/0/000.p/0":        {0, "", "no-store"},
		"tile/0/000.p/256":      {0, "", "no-store"},
		"tile/-1/000":           {0, "", "no-store"},
		"tile/data/000":         {0, "", "no-store"},
		"tile/entries/001.p/45": {0, "", "no-store"},
		"tile/entries/x001/000": {0, "", "no-store"},
		"tile/0/x999/x999/x999/x999/x999/x999/x999": {0, "", "no-store"},
	} {
		status, body, header := l.get(path)
		found := want.kind != ""
		if (status == http.StatusOK) != found || !found && status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, status, body)
			continue
		}
		if header.Get("Cache-Control") != want.caching || found && header.Get("Content-Type") != want.kind {
			t.Errorf("%s: %v", path, header)
		}
		if found && want.bytes >= 0 && len(body) != want.bytes {
			t.Errorf("%s has %d bytes", path, len(body))
		}
	}
	if status, _, _ := l.get("tile/0/000/"); status == http.StatusOK {
		t.Error("a path with a slash at the end is served")
	}
}

// TestBrokersAlike: brokers that append the same leaves at once make one log, and the same
// checkpoints and tiles of it, to the byte.
func TestBrokersAlike(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	logs := []*log{p.open(newBoard()), p.open(newBoard()), p.open(newBoard())}
	var racing sync.WaitGroup
	for _, l := range logs {
		racing.Go(func() { l.append(names(0, 300)...) })
	}
	racing.Wait()
	for _, l := range logs {
		if c := l.has(300); c.Tree.N != 300 {
			t.Fatalf("the log has %d leaves", c.Tree.N)
		}
	}
	for _, path := range []string{"checkpoint", "tile/0/000", "tile/0/001.p/44", "tile/1/000.p/1", "tile/entries/000", "tile/entries/001.p/44"} {
		_, want, _ := logs[0].get(path)
		for _, l := range logs[1:] {
			if status, got, _ := l.get(path); status != http.StatusOK || !bytes.Equal(got, want) {
				t.Errorf("%s: brokers serve others", path)
			}
		}
	}
}

// TestFailpoints: wherever a broker stops, the next one goes on with the same log.
func TestFailpoints(t *testing.T) {
	t.Parallel()
	for _, point := range ledger.Failpoints() {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			saved, stopped, end := newBoard(), make(chan struct{}), make(chan struct{})
			policy := func(*ledger.Options) {}
			if strings.Contains(point, "cosigned") {
				policy = witnessed(p, 0, p.newWitness("witness"))
			}
			first := p.open(newBoard())
			first.append(names(0, 5)...)
			first.has(5)
			var once sync.Once
			p.open(saved, policy, func(o *ledger.Options) {
				o.Failpoint = func(name string) {
					if name == point {
						once.Do(func() { close(stopped) })
						<-end // it dies here
					}
				}
			})
			t.Cleanup(func() { close(end) })
			<-stopped
			next := p.open(saved, policy)
			next.append(names(0, 10)...)
			if c := next.has(10); c.Tree.N != 10 || c != first.has(10) {
				t.Errorf("%+v", c)
			}
		})
	}
}

// TestContradiction: a log that has lost leaves, or has others, is not served.
func TestContradiction(t *testing.T) {
	t.Parallel()
	saved := newBoard()
	l := newPlace(t).open(saved)
	l.append(names(0, 8)...)
	l.has(8)
	for name, leaves := range map[string][]string{"shorter": names(0, 5), "other": names(1, 12)} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			before := p.open(newBoard())
			before.append(leaves...)
			before.has(int64(len(leaves)))
			prior := newBoard()
			prior.newest = saved.newest
			restored := p.open(prior)
			refusedBy(restored, ledger.ErrContradiction)
			if status, body, _ := restored.get("checkpoint"); status != http.StatusServiceUnavailable || !strings.Contains(string(body), "contradicts") {
				t.Errorf("%d %s", status, body)
			}
			if proof, err := restored.Proof(p.ctx, inclusion.Session, leaves[0]); proof != nil || err != nil {
				t.Errorf("it proves %v, %v", proof, err)
			}
			if prior.newest != saved.newest {
				t.Error("it published a checkpoint")
			}
		})
	}
}

// refusedBy waits until a ledger refuses for a reason.
func refusedBy(l *log, why error) {
	l.p.Helper()
	natskit.Eventually(l.p, "the log refuses", func() bool {
		if l.Refused() == nil {
			l.p.Fatal("the log refuses nothing")
		}
		return errors.Is(l.Refused(), why)
	})
}

// TestRestored: a log that comes from a backup does not grow beyond it.
func TestRestored(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	first := p.open(newBoard())
	first.append(names(0, 5)...)
	first.has(5)
	bucket, err := p.store.Bucket(p.ctx, api.LedgerBucket, "", 0)
	natskit.Must(t, err)
	_, err = bucket.Put(p.ctx, api.RestoredKey, []byte(`{"size":5}`))
	natskit.Must(t, err)
	restored := p.open(newBoard())
	restored.append(names(5, 9)...)
	first.has(9)
	if c := restored.has(5); c.Tree.N != 5 {
		t.Errorf("a restored log has a checkpoint of %d leaves", c.Tree.N)
	}
	if status, _, _ := restored.get("tile/0/000.p/9"); status != http.StatusNotFound {
		t.Errorf("a restored log has new leaves: %d", status)
	}
	// The newest checkpoint that was published is of another log, then of this one.
	other := newPlace(t).open(newBoard())
	other.append(names(100, 107)...)
	other.has(7)
	forked := p.open(newBoard(), func(o *ledger.Options) { o.Resume = other.newest })
	refusedBy(forked, ledger.ErrContradiction)
	first.mu.Lock()
	newest := first.newest
	first.mu.Unlock()
	// One that is older than the backup, of an earlier disaster, says nothing of what came after the backup.
	early := newPlace(t).open(newBoard())
	early.append(names(0, 3)...)
	early.has(3)
	warned, said := observer.New(zap.ErrorLevel)
	old := p.open(newBoard(), func(o *ledger.Options) { o.Resume, o.Log = early.newest, zap.New(warned) })
	if c := old.has(5); c.Tree.N != 5 {
		t.Errorf("after an old checkpoint the log has one of %d leaves", c.Tree.N)
	}
	if said.FilterMessageSnippet("older than the backup").Len() != 1 {
		t.Errorf("an old checkpoint is taken silently: %v", said.All())
	}
	if _, err := bucket.Get(p.ctx, api.RestoredKey); err != nil {
		t.Errorf("an old checkpoint has lifted the bound: %v", err)
	}
	if c := p.open(newBoard(), func(o *ledger.Options) { o.Resume = newest }).has(9); c.Tree.N != 9 {
		t.Errorf("a log that resumes has a checkpoint of %d leaves", c.Tree.N)
	}
	if c := p.open(newBoard()).has(9); c.Tree.N != 9 {
		t.Errorf("the next broker has a checkpoint of %d leaves", c.Tree.N)
	}
}

// TestUnsavedCheckpoint: a checkpoint that cannot be kept is not published.
func TestUnsavedCheckpoint(t *testing.T) {
	t.Parallel()
	b := newBoard()
	b.fails = errors.New("the disk is full")
	l := newPlace(t).open(b)
	l.append("s1")
	if status, _, _ := l.get("checkpoint"); status != http.StatusServiceUnavailable {
		t.Errorf("it is served: %d", status)
	}
	b.mu.Lock()
	b.fails = nil
	b.mu.Unlock()
	l.has(1)
	natskit.Eventually(t, "the checkpoint is served", func() bool { // after Save has returned
		status, _, _ := l.get("checkpoint")
		return status == http.StatusOK
	})
}
