package formats

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// TestStoreOfNovember2026 opens the data directory of a broker whose case logs were on
// asp.desk.*.* of a stream ASP_DESK, with members desk and theirs. It has an agreed session,
// one that a human decided, one that waits for a human, and one that is open. alice.nk is the
// key of human://acme.com/alice, 127.0.0.1:14333 was its only address.
func TestStoreOfNovember2026(t *testing.T) {
	t.Parallel()
	data := unpacked(t, "2026-11.tar.gz")
	clock := testkit.StoppedClock(time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)) // before anything there is due
	w := testkit.NewWorld(t, testkit.Options{Data: data, Now: clock.Now})
	seed, err := os.ReadFile(filepath.Join(data, "alice.nk"))
	testkit.Must(t, err)
	pair, err := nkeys.FromSeed(bytes.TrimSpace(seed))
	testkit.Must(t, err)
	signer := testkit.Signer(t, pair)
	for range 2 { // as it was moved, and as it is from then on
		verifies(t, w)
		// One key signed and logged in there; the operator gives her one for each.
		_, err := w.OperatorClient().RotateKey(w.Ctx, "human://acme.com/alice", signer.Key(), testkit.LoginKeys(t, pair)...)
		testkit.Must(t, err)
		alice, err := client.Connect(w.Ctx, w.URL, "human://acme.com/alice", testkit.Keys(t, signer)...)
		testkit.Must(t, err)
		comments(t, w, alice)
		testkit.Must(t, alice.Close())
		w.Down()
		w.Up()
	}
}

// verifies reads all sessions, two of which are over for longer than the archive waits.
func verifies(t *testing.T, w *testkit.World) {
	t.Helper()
	operator, err := client.ConnectOperator(w.Ctx, w.URL, client.Login(testkit.Signer(w, w.Operator())))
	testkit.Must(t, err)
	defer operator.Close()
	key, err := operator.BrokerKey(w.Ctx)
	testkit.Must(t, err)
	found := map[string]session.Phase{}
	for s, err := range operator.Sessions(w.Ctx, api.ListSessions{}) {
		testkit.Must(t, err)
		found[s.Purpose] = s.State
		stored, err := operator.Stored(w.Ctx, s.Session)
		testkit.Must(t, err)
		faults, err := transcript.Verify(bytes.NewReader(append(bytes.Join(stored, []byte("\n")), '\n')), key, transcript.Expect{})
		if err != nil || len(faults) > 0 {
			t.Errorf("%s: %v %v", s.Purpose, faults, err)
		}
	}
	want := map[string]session.Phase{
		"agreed and closed": session.Closed, "decided by a human": session.Conversing, "waits for a human": session.Escalated, "open": session.Conversing,
	}
	for purpose, phase := range want {
		if found[purpose] != phase {
			t.Errorf("%q is %s, want %s", purpose, found[purpose], phase)
		}
	}
}

// comments adds to the case logs, which go on where they were.
func comments(t *testing.T, w *testkit.World, alice *client.Client) {
	t.Helper()
	before := map[string][]escalation.Kind{
		"decided by a human": {escalation.Opened, escalation.Viewed, escalation.Claimed, escalation.Commented, escalation.Voted, escalation.Decided},
		"waits for a human":  {escalation.Opened, escalation.Claimed, escalation.Commented},
	}
	for item, err := range alice.Escalations(w.Ctx, api.ListEscalations{Status: "all"}) {
		testkit.Must(t, err)
		if len(item.Counterparties) != 1 || item.Case.Comments == 0 {
			t.Errorf("%s has the counterparties %v and the case %+v", item.Purpose, item.Counterparties, item.Case)
		}
		log, err := client.Do(w.Ctx, alice, api.EscalationHistory, api.ReadCaseLog{Escalation: string(item.ID)})
		testkit.Must(t, err)
		var kinds []escalation.Kind
		for _, a := range log.Actions {
			kinds = append(kinds, a.Kind)
		}
		if want := before[item.Purpose]; len(kinds) < len(want) || !slices.Equal(kinds[:len(want)], want) {
			t.Errorf("the case log of %q is %v, want %v at first", item.Purpose, kinds, want)
		}
		delete(before, item.Purpose)
		if item.Purpose != "waits for a human" {
			continue
		}
		now, err := client.Do(w.Ctx, alice, api.EscalationComment, api.CommentEscalation{Escalation: string(item.ID), Text: "I look at it."})
		if err != nil || now.Case.Comments != item.Case.Comments+1 {
			t.Errorf("%d comments after %d, %v", now.Case.Comments, item.Case.Comments, err)
		}
	}
	if len(before) > 0 {
		t.Errorf("not listed: %v", before)
	}
}

// unpacked is a copy of a data directory.
func unpacked(t *testing.T, name string) string {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "stores", name))
	testkit.Must(t, err)
	defer file.Close()
	stream, err := gzip.NewReader(file)
	testkit.Must(t, err)
	dir, r := t.TempDir(), tar.NewReader(stream)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		testkit.Must(t, err)
		path := filepath.Join(dir, filepath.Clean("/"+h.Name))
		if strings.HasSuffix(h.Name, "/") {
			testkit.Must(t, os.MkdirAll(path, 0o700))
			continue
		}
		data, err := io.ReadAll(r)
		testkit.Must(t, err)
		testkit.Must(t, os.WriteFile(path, data, 0o600))
	}
}
