package server_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/session/evidence"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		testkit.Must(t, err)
		return v
	}
}

// rotate replaces the key of a world's broker, which is restarted.
func rotate(w *testkit.World) performatives.KeyHistory {
	w.Helper()
	if _, err := server.RotateBrokerKey(w.Data, time.Now()); !errors.Is(err, server.ErrInUse) {
		w.Errorf("the key of a broker that runs is rotated: %v", err)
	}
	w.Down()
	history, err := server.RotateBrokerKey(w.Data, time.Now())
	testkit.Must(w, err)
	w.Up()
	return history
}

// entries is the whole transcript of a session.
func entries(w *testkit.World, id performatives.SessionID) []byte {
	w.Helper()
	var page api.Messages
	testkit.Must(w, json.Unmarshal(w.Principal(alpha).Call(api.SessionMessages.Name, `{"sessionId":"`+string(id)+`","limit":1000}`).Data, &page))
	lines := make([][]byte, len(page.Messages))
	for i, m := range page.Messages {
		lines[i] = m
	}
	return bytes.Join(lines, []byte("\n"))
}

// holds reports whether a transcript verifies by what somebody trusts.
func holds(w *testkit.World, id performatives.SessionID, trusted performatives.Key, history performatives.KeyHistory) bool {
	w.Helper()
	keys, err := history.Trust(trusted)
	testkit.Must(w, err)
	faults, err := transcript.Verify(bytes.NewReader(entries(w, id)), trusted, transcript.Expect{Session: id, BrokerKeys: keys})
	testkit.Must(w, err)
	return len(faults) == 0
}

// agreed has two agree on a proposal, and returns the agreement once it is in the log.
func agreed(w *testkit.World, id performatives.SessionID) []byte {
	w.Helper()
	w.Principal(beta).Say(id, &performatives.AcceptBody{ReferenceID: "p1"})
	w.Principal(alpha).Say(id, &performatives.CommitBody{CommitmentID: "k1", ReferenceID: "p1", Terms: &performatives.CommitmentTerms{
		Obligations: []performatives.Obligation{{Party: alpha, Action: "pay"}},
	}})
	w.Principal(beta).Say(id, &performatives.AcceptBody{ReferenceID: "k1"})
	var data []byte
	testkit.Eventually(w, "the agreement is in the log", func() bool {
		data = w.Principal(alpha).Call(api.AgreementGet.Name, `{"agreementId":"`+string(agreement.IDOf(id, "p1"))+`"}`).Data
		var d agreement.Document
		return json.Unmarshal(data, &d) == nil && d.Log != nil
	})
	return data
}

// Sessions, agreements, the public log, hosted agents and tokens go on when the broker's key is replaced, and
// whoever knows one of its keys verifies what any of them signed.
func TestRotatedBrokerKey(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	w := testkit.NewHosted(t, testkit.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	a, b := w.Principal(alpha), w.Principal(beta)
	open, closed, first, deal, match := w.Open(a, b), w.Open(a, b), w.Open(a, b), w.Open(a, b), w.Match()
	a.Say(closed, &performatives.CloseBody{Outcome: performatives.Completed})
	unanswered := testkit.NewSession()
	a.Say(unanswered, testkit.Invitation(beta))
	for _, id := range []performatives.SessionID{first, deal} {
		a.Say(id, testkit.Offer("p1", 5))
	}
	before := agreed(w, first)
	old, logKey := w.Server.Broker.Command.Key(), w.Server.Broker.Parts.Ledger.VerifierKey()
	sdk := w.Client(alpha)
	_, err := sdk.Session(open).Say(w.Ctx, testkit.Fact("the client notes the broker's key"))
	testkit.Must(t, err)
	late := a.Envelope(open, testkit.Fact("signed for the old key"), func(d *performatives.Draft) { d.Broker = old })

	rotate(w)
	history := rotate(w) // twice
	newest := w.Server.Broker.Command.Key()
	if newest != history.Newest() || len(history) != 3 || history.Oldest() != old {
		t.Fatalf("the broker signs with %s after %v", newest, history)
	}
	info, err := sdk.Broker(w.Ctx)
	testkit.Must(t, err)
	if info.Key != newest || len(info.Keys) != 3 || info.Since != api.Timestamp(must(time.Parse(performatives.TimeFormat, history[2].Since))(t)) {
		t.Errorf("the broker says %+v", info)
	}
	var version struct {
		Broker performatives.Key        `json:"broker"`
		Keys   performatives.KeyHistory `json:"keys"`
	}
	w.Send("GET", "/version", "", "").Is(http.StatusOK, &version)
	if version.Broker != newest || len(version.Keys) != 3 {
		t.Errorf("over HTTP: %+v", version)
	}

	testkit.Accepted(t, a.Submit(open, late))
	if _, err := sdk.Session(open).Say(w.Ctx, testkit.Fact("by the same client")); err != nil {
		t.Errorf("a client that noted the old key: %v", err)
	}
	elsewhere := a.Envelope(open, testkit.Fact("x"), func(d *performatives.Draft) { d.Broker = testkit.Signer(t, testkit.NewKey(t)).Key() })
	testkit.Refused(t, a.Submit(open, elsewhere), session.SignatureInvalid)
	a.Say(open, &performatives.CloseBody{Outcome: performatives.Completed})
	after := agreed(w, deal) // offered before, accepted after
	if got := w.Server.Broker.Parts.Ledger.VerifierKey(); got != logKey {
		t.Errorf("the log has another key: %s", got)
	}

	// A hosted agent picks up and answers by the token of before.
	turn := w.PickUp(w.Tokens[testkit.Cron])
	if turn.Session != match {
		t.Errorf("a hosted agent picks up %+v", turn)
	}
	w.Respond(string(match), w.Tokens[testkit.Cron], `{"performative":"PROPOSE","body":{"proposalId":"h1","type":"negotiation","subject":"cups","terms":{"cups":10},`+testkit.Assessed+`}}`).Is(http.StatusOK, nil)

	// The broker ends with its new key what was opened with its old one.
	ahead.Store(int64(48 * time.Hour))
	tooLate := b.Submit(unanswered, b.Envelope(unanswered, &performatives.AcceptBody{ReferenceID: "inv"}, func(d *performatives.Draft) {
		d.Timestamp = d.Timestamp.Add(48 * time.Hour)
	}))
	if !bytes.Contains(entries(w, unanswered), []byte("broker://"+string(newest))) {
		t.Errorf("the broker did not end a session whose invitation nobody answered: %s", tooLate.Data)
	}

	for _, id := range []performatives.SessionID{open, closed, first, deal, unanswered} {
		for _, r := range history {
			if !holds(w, id, r.Key, history) {
				t.Errorf("session %s does not verify by %s", id, r.Key)
			}
		}
		if got := holds(w, id, old, nil); got != (id == closed || id == first) {
			t.Errorf("session %s by the old key alone: %v", id, got)
		}
		if holds(w, id, newest, nil) {
			t.Errorf("session %s verifies by the new key alone", id)
		}
	}
	another := performatives.Key(testkit.Public(t, testkit.NewKey(t)))
	if _, err := sdk.BrokerKeys(w.Ctx, another); !errors.Is(err, performatives.ErrUntrusted) {
		t.Errorf("a client that noted another broker: %v", err)
	}

	log, err := inclusion.ParseKey(logKey)
	testkit.Must(t, err)
	for _, trusted := range []performatives.Key{old, newest} {
		keys, err := sdk.BrokerKeys(w.Ctx, trusted)
		testkit.Must(t, err)
		for _, data := range [][]byte{before, after} {
			if r := agreement.Verify(data, agreement.Trust{Broker: trusted, BrokerKeys: keys, Log: log}); len(r.Faults) > 0 || !r.Logged {
				t.Errorf("an agreement by %s: %v", trusted, r.Faults)
			}
		}
	}
	if r := agreement.Verify(after, agreement.Trust{Broker: old}); len(r.Faults) == 0 {
		t.Error("an agreement of the new key holds by the old one alone")
	}

	// A bundle of evidence brings the history.
	bundle := a.Call(api.SessionEvidence.Name, `{"sessionId":"`+string(deal)+`"}`).Data
	for _, trusted := range []performatives.Key{"", old, newest} {
		if r := evidence.Verify(bundle, evidence.Trust{Trust: agreement.Trust{Broker: trusted, Log: log}}); len(r.Faults) > 0 {
			t.Errorf("the evidence by %q: %v", trusted, r.Faults)
		}
	}
	if r := evidence.Verify(bundle, evidence.Trust{Trust: agreement.Trust{Broker: another}}); len(r.Faults) == 0 {
		t.Error("the evidence holds by another broker's key")
	}
	redacted := a.Call(api.SessionEvidence.Name, `{"sessionId":"`+string(deal)+`","redact":["price"]}`).Data
	if r := evidence.Verify(redacted, evidence.Trust{Trust: agreement.Trust{Broker: newest}}); len(r.Faults) > 0 || r.Withheld == 0 {
		t.Errorf("the redacted evidence: %v", r.Faults)
	}
	var members map[string]jsontext.Value
	testkit.Must(t, json.Unmarshal(bundle, &members))
	delete(members, "brokerKeys")
	if r := evidence.Verify(must(json.Marshal(members))(t), evidence.Trust{}); len(r.Faults) == 0 {
		t.Error("the evidence of two keys holds without their history")
	}

	// Nobody is registered with a key that the broker had.
	if _, err := w.OperatorClient().AddAgent(w.Ctx, api.Card{Agent: "agent://evil.example/x", Key: old}); err == nil {
		t.Error("a principal has the broker's old key")
	}
}

// The keys of a backup are all that another directory needs.
func TestRotatedKeysRestored(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{})
	rotate(w)
	files, err := server.Keys(w.Data)
	testkit.Must(t, err)
	data := t.TempDir()
	for name, text := range files {
		testkit.Must(t, server.WriteSecret(filepath.Join(data, name), text))
	}
	restored := testkit.StartBroker(t, testkit.Options{Data: data})
	if got, want := restored.Broker.Command.Key(), w.Server.Broker.Command.Key(); got != want {
		t.Errorf("restored with the key %s, not %s", got, want)
	}
	if got, want := restored.Broker.Parts.Ledger.VerifierKey(), w.Server.Broker.Parts.Ledger.VerifierKey(); got != want {
		t.Errorf("restored with the log %s, not %s", got, want)
	}
}

// Brokers on an external server share a directory, and keep a rotation out.
func TestRotatedWhileOthersRun(t *testing.T) {
	t.Parallel()
	o := testkit.Configured(t)
	one, two := testkit.StartBroker(t, o), testkit.StartBroker(t, o)
	one.Down()
	if _, err := server.RotateBrokerKey(o.Data, time.Now()); !errors.Is(err, server.ErrInUse) {
		t.Errorf("beside a broker that runs: %v", err)
	}
	two.Down()
	history, err := server.RotateBrokerKey(o.Data, time.Now())
	testkit.Must(t, err)
	one.Up()
	if got := one.Broker.Command.Key(); got != history.Newest() {
		t.Errorf("the key is %s", got)
	}
}

// While a key is rotated no broker reads it, on a store of its own or at an external server: it would sign with
// the key of before.
func TestRotatedWhileItStarts(t *testing.T) {
	t.Parallel()
	for _, nats := range []string{"", "nats://127.0.0.1:1"} {
		dir := t.TempDir()
		rotates, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
		testkit.Must(t, err)
		testkit.Must(t, syscall.Flock(int(rotates.Fd()), syscall.LOCK_EX))
		_, err = server.Start(t.Context(), server.Options{Data: dir, NATS: nats, Listen: "127.0.0.1:-1"})
		if !errors.Is(err, server.ErrInUse) {
			t.Errorf("--nats %q: %v", nats, err)
		}
		if _, err := os.Stat(filepath.Join(dir, server.BrokerSeed)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("--nats %q: the key was read before the lock: %v", nats, err)
		}
		testkit.Must(t, rotates.Close())
	}
}

// A broker with key files of before a rotation, or with some of them, would sign what nobody can verify. It does not start.
func TestStaleBrokerKey(t *testing.T) {
	t.Parallel()
	o := server.Options{Data: t.TempDir(), Listen: "127.0.0.1:-1"}
	testkit.Must(t, runs(t, o))
	files := func(names ...string) (all map[string][]byte) {
		all = map[string][]byte{}
		for _, name := range names {
			all[name] = must(os.ReadFile(filepath.Join(o.Data, name)))(t)
		}
		return all
	}
	first := files(server.BrokerSeed)
	rotate := func() map[string][]byte {
		must(server.RotateBrokerKey(o.Data, time.Now()))(t)
		return files(server.BrokerSeed, server.BrokerKeysFile, server.BrokerSecret)
	}
	second := rotate()
	third := rotate()
	testkit.Must(t, runs(t, o))
	foreign := maps.Clone(third)
	foreign[server.BrokerSecret] = []byte(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	for name, c := range map[string]struct {
		files map[string][]byte
		want  error
	}{
		"of before both rotations": {first, server.ErrKeyReplaced},
		"of before the second":     {second, server.ErrKeyReplaced},
		"the second key alone":     {map[string][]byte{server.BrokerSeed: second[server.BrokerSeed]}, server.ErrKeyReplaced},
		"the newest key alone":     {map[string][]byte{server.BrokerSeed: third[server.BrokerSeed]}, server.ErrKeyLost},
		"another secret":           {foreign, server.ErrKeyLost},
		"all of them":              {third, nil},
	} {
		for _, f := range []string{server.BrokerSeed, server.BrokerKeysFile, server.BrokerSecret} {
			if err := os.Remove(filepath.Join(o.Data, f)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if text := c.files[f]; text != nil {
				testkit.Must(t, os.WriteFile(filepath.Join(o.Data, f), text, 0o600))
			}
		}
		if err := runs(t, o); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A broker that runs while another one starts with a newer key ends: what it signed from then on would be a fault.
func TestReplacedKeyEndsBroker(t *testing.T) {
	t.Parallel()
	o := testkit.Configured(t)
	old := must(server.Start(t.Context(), o))(t)
	t.Cleanup(func() { old.Close(context.WithoutCancel(t.Context())) })
	newer := o
	newer.Data = t.TempDir()
	for name, seed := range must(server.Keys(o.Data))(t) {
		testkit.Must(t, server.WriteSecret(filepath.Join(newer.Data, name), seed))
	}
	var why error
	stops := func() bool {
		select {
		case why = <-old.MustStop():
			return true
		default:
			return false
		}
	}
	if stops() {
		t.Fatalf("alone it ends: %v", why)
	}
	must(server.RotateBrokerKey(newer.Data, time.Now()))(t)
	testkit.Must(t, runs(t, newer))
	testkit.Eventually(t, "the broker with the older key ends", stops)
	if !errors.Is(why, server.ErrKeyReplaced) {
		t.Error(why)
	}
}
