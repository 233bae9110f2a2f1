package ledger_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	cosignature "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/parley-asp/parley/broker/ledger"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/test/natskit"
)

// A witness is one of C2SP's tlog-witness, for one log.
type witness struct {
	*place
	*httptest.Server
	key    note.Verifier
	signer note.Signer
	log    note.Verifier // of the log, nil until it is known

	mu      sync.Mutex
	tree    tlog.Tree // that it has cosigned
	fails   int       // answer with this status
	answers []int     // the statuses that it has answered
	posted  chan struct{}
}

func (p *place) newWitness(name string) *witness {
	p.Helper()
	private, public, err := note.GenerateKey(nil, name)
	natskit.Must(p, err)
	w := &witness{place: p, posted: make(chan struct{}, 1000)}
	w.signer, err = cosignature.NewSignerForCosignatureV1(private)
	natskit.Must(p, err)
	w.key, err = inclusion.ParseWitness(public)
	natskit.Must(p, err)
	w.Server = httptest.NewServer(w)
	p.Cleanup(w.Close)
	return w
}

func (w *witness) ServeHTTP(answer http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/add-checkpoint" {
		http.NotFound(answer, r)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	status, text := w.cosign(string(body))
	w.answers = append(w.answers, status)
	w.posted <- struct{}{}
	answer.WriteHeader(status)
	io.WriteString(answer, text) //nolint:errcheck // the client went away
}

func (w *witness) cosign(body string) (status int, text string) {
	if w.fails != 0 {
		return w.fails, "no"
	}
	head, signed, _ := strings.Cut(body, "\n\n")
	lines := strings.Split(head, "\n")
	var old int64
	if _, err := fmt.Sscanf(lines[0], "old %d", &old); err != nil {
		return http.StatusBadRequest, err.Error()
	}
	c, err := inclusion.Open(signed, w.log)
	switch {
	case err != nil:
		return http.StatusForbidden, err.Error()
	case old > c.Tree.N:
		return http.StatusBadRequest, "old"
	case old != w.tree.N:
		return http.StatusConflict, fmt.Sprintln(w.tree.N)
	}
	var proof tlog.TreeProof
	for _, line := range lines[1:] {
		hash, err := tlog.ParseHash(line)
		if err != nil {
			return http.StatusUnprocessableEntity, err.Error()
		}
		proof = append(proof, hash)
	}
	if old > 0 {
		err = tlog.CheckTree(proof, c.Tree.N, c.Tree.Hash, old, w.tree.Hash)
	} else if len(proof) > 0 {
		err = errors.New("a proof from nothing")
	}
	if err != nil {
		return http.StatusUnprocessableEntity, err.Error()
	}
	cosigned, err := note.Sign(&note.Note{Text: c.Text()}, w.signer)
	if err != nil {
		return http.StatusInternalServerError, err.Error()
	}
	w.tree = c.Tree
	return http.StatusOK, strings.TrimPrefix(string(cosigned), c.Text()+"\n")
}

func (w *witness) fail(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fails = status
}

// asked waits until the witness has answered so often.
func (w *witness) asked(times int) {
	w.Helper()
	for range times {
		select {
		case <-w.posted:
		case <-w.ctx.Done():
			w.Fatal("the witness is not asked")
		}
	}
}

// witnessed lets witnesses cosign the log of a test.
func witnessed(p *place, quorum int, all ...*witness) func(*ledger.Options) {
	p.Helper()
	l, err := ledger.Open(p.ctx, ledger.Options{Store: p.newStore(), Secret: secret, Origin: origin})
	natskit.Must(p, err)
	key, err := inclusion.ParseKey(l.VerifierKey())
	natskit.Must(p, err)
	l.Close()
	o := ledger.Witnesses{Quorum: quorum}
	for _, w := range all {
		w.log = key
		o.All = append(o.All, ledger.Witness{Key: w.key, URL: w.URL + "/"})
	}
	return func(to *ledger.Options) { to.Witnesses = o }
}

func (b *board) last() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.newest
}

func (l *log) signedBy(all ...*witness) []string {
	l.p.Helper()
	var keys []note.Verifier
	for _, w := range all {
		keys = append(keys, w.key)
	}
	lines, err := inclusion.Cosignatures(l.last(), keys)
	natskit.Must(l.p, err)
	return lines
}

// TestWitnesses: all brokers serve the same cosigned checkpoint, to the byte.
func TestWitnesses(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	w1, w2 := p.newWitness("w1.example/a"), p.newWitness("w2.example/b")
	policy := witnessed(p, 0, w1, w2)
	logs := []*log{p.open(newBoard(), policy), p.open(newBoard(), policy)}
	for _, size := range []int{3, 256, 300} {
		logs[0].append(names(0, size)...)
		if logs[0].has(int64(size)) != logs[1].has(int64(size)) {
			t.Error("brokers publish other trees")
		}
		if a, b := logs[0].last(), logs[1].last(); a != b {
			t.Errorf("brokers publish other bytes:\n%s\n%s", a, b)
		}
		if n := len(logs[1].signedBy(w1, w2)); n != 2 {
			t.Errorf("%d witnesses have cosigned", n)
		}
	}
	next := p.open(newBoard(), policy) // it learns what the witnesses have
	next.has(300)
	if next.last() != logs[0].last() {
		t.Error("the next broker publishes other bytes")
	}
	natskit.Eventually(t, "the next broker proves a leaf", func() bool {
		proof, err := next.Proof(p.ctx, inclusion.Session, names(0, 1)[0])
		natskit.Must(t, err)
		if proof != nil {
			natskit.Must(t, proof.VerifyCosigned(next.verifier(), []note.Verifier{w1.key, w2.key}))
			if err := proof.VerifyCosigned(next.verifier(), []note.Verifier{w1.key, p.newWitness("w3").key}); err == nil {
				t.Error("a witness that was not asked has cosigned")
			}
		}
		return proof != nil
	})
}

// TestWitnessesFail: too few cosignatures publish nothing; enough do, whatever the others answer.
func TestWitnessesFail(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	good, bad, other := p.newWitness("good"), p.newWitness("bad"), p.newWitness("other")
	policy := witnessed(p, 2, good, bad, other)
	thief := p.newWitness("other")
	other.signer = thief.signer // its cosignatures are of another key
	bad.fail(http.StatusServiceUnavailable)
	l := p.open(newBoard(), policy)
	l.append(names(0, 5)...)
	bad.asked(2)
	if status, _, _ := l.get("checkpoint"); status != http.StatusServiceUnavailable || l.last() != "" {
		t.Errorf("it publishes with one cosignature of two: %d %s", status, l.last())
	}
	bad.fail(0)
	l.has(5)
	if lines := l.signedBy(good, bad, other); len(lines) != 2 {
		t.Errorf("cosigned by %q", lines)
	}
}

// TestWitnessAdded: what was published stays, though a witness that is new does not answer.
func TestWitnessAdded(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	file := newBoard()
	l := p.open(file)
	l.append(names(0, 5)...)
	l.has(5)
	before := l.last()
	w := p.newWitness("new")
	w.fail(http.StatusServiceUnavailable)
	l = p.open(file, witnessed(p, 0, w))
	w.asked(1)
	if status, data, _ := l.get("checkpoint"); status != http.StatusOK || string(data) != before {
		t.Errorf("while the new witness is away: %d %s", status, data)
	}
	w.fail(0)
	natskit.Eventually(t, "the new witness has cosigned", func() bool { return len(l.signedBy(w)) == 1 })
	l.append(names(5, 7)...)
	l.has(7)
}

// TestWitnessAgainstFork: a witness that knows one log does not cosign another with its key.
func TestWitnessAgainstFork(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	w := p.newWitness("witness")
	l := p.open(newBoard(), witnessed(p, 0, w))
	l.append(names(0, 8)...)
	l.has(8)
	w.mu.Lock()
	before := len(w.answers)
	w.mu.Unlock()
	p = newPlace(t)
	forked := p.open(newBoard(), witnessed(p, 0, w))
	forked.append(names(1, 12)...)
	for refused := false; !refused; {
		w.asked(1)
		w.mu.Lock()
		for _, status := range w.answers[before:] {
			refused = refused || status == http.StatusUnprocessableEntity
		}
		w.mu.Unlock()
	}
	if status, _, _ := forked.get("checkpoint"); status != http.StatusServiceUnavailable || forked.last() != "" {
		t.Errorf("a log that forked is served: %d", status)
	}
}

// TestWitnessPolicy: a policy that cannot be kept is refused at the start.
func TestWitnessPolicy(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	w := p.newWitness("w")
	one := ledger.Witness{Key: w.key, URL: w.URL}
	for name, policy := range map[string]ledger.Witnesses{
		"too many":   {All: []ledger.Witness{one}, Quorum: 2},
		"below zero": {All: []ledger.Witness{one}, Quorum: -1},
		"none":       {Quorum: 1},
		"twice":      {All: []ledger.Witness{one, one}},
		"no URL":     {All: []ledger.Witness{{Key: w.key, URL: "w.example"}}},
		"a file":     {All: []ledger.Witness{{Key: w.key, URL: "file:///etc/passwd"}}},
	} {
		if l, err := ledger.Open(p.ctx, ledger.Options{Store: p.newStore(), Secret: secret, Witnesses: policy}); err == nil {
			l.Close()
			t.Errorf("%s: it opens", name)
		}
	}
}
