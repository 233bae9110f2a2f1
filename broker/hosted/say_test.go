package hosted_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	buyer  = performatives.Agent("agent://acme.com/buyer")
	seller = performatives.Agent("agent://widgets.co/seller")
	robot  = performatives.Agent("agent://other.io/robot")
)

// A world has two hosted agents, and one that signs for itself.
type world struct{ *testkit.World }

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{testkit.NewWorld(t, testkit.Options{})}
	for _, a := range []performatives.Agent{buyer, seller} {
		_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: a})
		testkit.Must(t, err)
	}
	w.Principal(robot)
	return w
}

// says calls session.say.
func (w world) says(a performatives.Agent, q api.Say) (api.Acceptance, error) {
	return w.Server.Broker.Service.As(a).Say(w.Ctx, q)
}

// must says what has to be accepted.
func (w world) must(a performatives.Agent, id performatives.SessionID, act, body string) api.Acceptance {
	w.Helper()
	accepted, err := w.says(a, api.Say{Session: id, Performative: act, Body: jsontext.Value(body)})
	if err != nil {
		w.Fatalf("%s %s: %v", act, body, err)
	}
	return accepted
}

// opened is a session in a mode that buyer and seller have joined.
func (w world) opened(mode string) performatives.SessionID {
	w.Helper()
	id := w.must(buyer, "", "PROPOSE", `{"proposalId":"invitation","type":"session-invitation","subject":"cups","terms":{"purpose":"cups","mode":"`+mode+`","participants":["`+string(seller)+`"]}}`).Session
	w.must(seller, id, "ACCEPT", `{"referenceId":"invitation"}`)
	return id
}

func refused(err error, code session.Code) bool { return errors.Is(err, &session.Refusal{Code: code}) }

const offer = `{"proposalId":"p1","type":"offer","subject":"cups","terms":{"price":7}}`

// What is said again under its key is answered with the first acceptance, also after a restart,
// and something else under it is refused.
func TestKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	said := api.Say{Session: w.opened("asp/1"), Performative: "PROPOSE", Body: jsontext.Value(offer), Key: "k1"}
	first, err := w.says(buyer, said)
	testkit.Must(t, err)
	other := said
	other.Body = jsontext.Value(`{"proposalId":"p2","type":"offer","subject":"cups","terms":{"price":8}}`)
	for _, restarted := range []bool{false, true} {
		if restarted {
			w.Down()
			w.Up()
		}
		again, err := w.says(buyer, said)
		if want := first; err != nil || !again.Duplicate || again.Sequence != want.Sequence || again.Hash != want.Hash {
			t.Errorf("restarted %t: it is answered %+v, %v, at first %+v", restarted, again, err, first)
		}
		if _, err := w.says(buyer, other); !refused(err, session.Duplicate) {
			t.Errorf("restarted %t: something else under the key is answered %v", restarted, err)
		}
	}
}

// Of all who say the same under one key at the same time, one is the first.
func TestKeyAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.opened("asp/1")
	var all sync.WaitGroup
	var mu sync.Mutex
	firsts, sequences := 0, []uint64{}
	for range 8 {
		all.Go(func() {
			accepted, err := w.says(buyer, api.Say{Session: id, Performative: "PROPOSE", Body: jsontext.Value(offer), Key: "k1"})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("one is answered %v", err)
			}
			if !accepted.Duplicate {
				firsts++
			}
			sequences = append(sequences, accepted.Sequence)
		})
	}
	all.Wait()
	if slices.Sort(sequences); firsts != 1 || sequences[0] != sequences[len(sequences)-1] {
		t.Errorf("%d are the first, at %v", firsts, sequences)
	}
}

// An act with ifHead is accepted at that head only; at another nothing happens.
func TestIfHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.opened("asp/1")
	view, err := w.Server.Broker.Service.As(buyer).View(w.Ctx, id)
	testkit.Must(t, err)
	decided := api.Say{Session: id, Performative: "PROPOSE", Body: jsontext.Value(offer), IfHead: view.Head.Next.PreviousHash}
	accepted, err := w.says(buyer, decided)
	if err != nil || accepted.Sequence != view.Head.Next.Sequence {
		t.Fatalf("at the head it is answered %+v, %v", accepted, err)
	}
	decided.Performative, decided.Body = "WITHDRAW", jsontext.Value(`{"referenceId":"p1","reason":"x"}`)
	if _, err := w.says(buyer, decided); !refused(err, session.ChainConflict) {
		t.Errorf("at a head that is gone it is answered %v", err)
	}
	if now, err := w.Server.Broker.Service.As(buyer).View(w.Ctx, id); err != nil || now.Head.Next.Sequence != accepted.Sequence+1 {
		t.Errorf("after a refusal the head is %+v, %v", now.Head, err)
	}
	decided.IfHead = accepted.Hash
	if _, err := w.says(buyer, decided); err != nil {
		t.Errorf("at the new head it is answered %v", err)
	}
}

// An act that ends the sender's part in the session, said again, is answered with its first acceptance.
func TestLastWord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const lawyer, spy = performatives.Agent("agent://acme.com/lawyer"), performatives.Agent("agent://spy.io/spy")
	for _, a := range []performatives.Agent{lawyer, spy} {
		_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: a})
		testkit.Must(t, err)
	}
	id := w.opened("asp/1")
	asked := w.must(buyer, id, "DELEGATE", `{"targetAgent":"`+string(lawyer)+`","scope":"check it","authority":"advisory"}`)
	declines := api.Say{
		Session: id, Performative: "REJECT", IfHead: asked.Hash, Message: testkit.NewID(), Key: "k1",
		Body: jsontext.Value(`{"referenceId":"` + string(asked.Message) + `","code":"unspecified","reason":"no time","retryable":false}`),
	}
	first, err := w.says(lawyer, declines)
	testkit.Must(t, err)
	for _, restarted := range []bool{false, true} {
		if restarted {
			w.Down()
			w.Up()
		}
		if again, err := w.says(lawyer, declines); err != nil || !again.Duplicate || again.Hash != first.Hash {
			t.Errorf("restarted %t: it is answered %+v, %v, at first %+v", restarted, again, err, first)
		}
		other := declines
		other.Body = jsontext.Value(strings.Replace(string(declines.Body), "no time", "no wish", 1))
		if _, err := w.says(lawyer, other); err == nil {
			t.Errorf("restarted %t: something else under the key is accepted", restarted)
		}
		for range 2 {
			if _, err := w.says(spy, declines); !refused(err, session.UnknownSession) {
				t.Errorf("restarted %t: somebody else is answered %v", restarted, err)
			}
		}
	}
}

// In a mode that signs agreements, offers and answers are linked and signed, whatever comes between them.
func TestBinding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	invites := api.Say{
		Performative: "PROPOSE", Key: "k0",
		Body: jsontext.Value(`{"proposalId":"invitation","type":"session-invitation","subject":"cups","terms":{"purpose":"cups","mode":"binding/1","participants":["` + string(seller) + `"]}}`),
	}
	opened, err := w.says(buyer, invites)
	testkit.Must(t, err)
	id := opened.Session
	if again, err := w.says(buyer, invites); err != nil || !again.Duplicate || again.Session != id {
		t.Errorf("the invitation said again is answered %+v, %v", again, err)
	}
	w.must(seller, id, "ACCEPT", `{"referenceId":"invitation"}`)
	said := api.Say{Session: id, Performative: "PROPOSE", Body: jsontext.Value(`{"proposalId":"p1","type":"offer","subject":"cups","terms":{"price":7}}`), Key: "k1"}
	first, err := w.says(buyer, said)
	testkit.Must(t, err)
	if again, err := w.says(buyer, said); err != nil || !again.Duplicate || again.Hash != first.Hash {
		t.Errorf("said again it is answered %+v, %v", again, err)
	}
	w.must(seller, id, "ACCEPT", `{"referenceId":"p1"}`)
	var made api.Agreements
	testkit.Must(t, w.Server.Broker.Service.As(buyer).Call(w.Ctx, api.AgreementList.Verb, api.ListAgreements{Session: id}, &made))
	if len(made.Agreements) != 1 {
		t.Errorf("they have made %d agreements", len(made.Agreements))
	}
}

// Who signs for itself says nothing by the broker, and an outsider learns nothing of a session.
func TestRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.opened("asp/1")
	if _, err := w.says(robot, api.Say{Session: id, Performative: "PROPOSE", Body: jsontext.Value(offer)}); !refused(err, session.Unauthorized) {
		t.Errorf("who signs for itself is answered %v", err)
	}
	_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: "agent://spy.io/spy"})
	testkit.Must(t, err)
	none := performatives.SessionID("0198c0de-0000-7000-8000-000000000000")
	for _, head := range []performatives.Hash{"", "sha256:0000000000000000000000000000000000000000000000000000000000000000"} {
		answers := map[string]bool{}
		for _, at := range []performatives.SessionID{id, none, "no id"} {
			_, err := w.says("agent://spy.io/spy", api.Say{Session: at, Performative: "WITHDRAW", Body: jsontext.Value(`{"referenceId":"p1"}`), IfHead: head})
			answers[err.Error()] = true
		}
		if len(answers) != 1 {
			t.Errorf("with ifHead %q the spy is answered %v", head, answers)
		}
	}
}

// TestPrivate: terms.private of the invitation that opens a session is held aside. Everywhere else it
// is refused, and of an invitation that is refused nothing is left.
func TestPrivate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	invites := func(id performatives.SessionID, mode string) (api.Acceptance, error) {
		return w.says(buyer, api.Say{Session: id, Performative: "PROPOSE", Body: jsontext.Value(`{"proposalId":"invitation","type":"session-invitation","subject":"cups","terms":{"purpose":"cups","mode":"` + mode + `","participants":["` + string(seller) + `"],"private":{"limit":"SECRET"}}}`)})
	}
	kept := func() int {
		w.Helper()
		bucket, err := w.Server.Broker.Parts.Store.Bucket(w.Ctx, api.PrivateBucket, "what inviters say for their own side alone", session.LongestDuration+14*24*time.Hour)
		testkit.Must(t, err)
		records, err := bucket.Records(w.Ctx, ">")
		testkit.Must(t, err)
		return len(slices.DeleteFunc(records, func(m store.Message) bool { return len(m.Data) == 0 }))
	}
	if _, err := invites("", "no/1"); !refused(err, session.ModeViolation) || kept() != 0 {
		t.Errorf("an invitation to a mode that is not there is answered %v, and leaves %d", err, kept())
	}
	opened, err := invites("", "asp/1")
	testkit.Must(t, err)
	if kept() != 1 {
		t.Errorf("of an accepted invitation %d are held aside", kept())
	}
	if _, err := invites(opened.Session, "asp/1"); err == nil || kept() != 1 {
		t.Errorf("another invitation is answered %v, and %d are held aside", err, kept())
	}
	if _, err := w.says(seller, api.Say{Session: opened.Session, Performative: "COUNTER", Body: jsontext.Value(`{"referenceId":"invitation","proposalId":"i2","terms":{"private":1}}`)}); !refused(err, session.SchemaInvalid) {
		t.Errorf("a COUNTER with terms.private is answered %v", err)
	}
	w.must(seller, opened.Session, "ACCEPT", `{"referenceId":"invitation"}`)
	if _, err := w.says(buyer, api.Say{Session: opened.Session, Performative: "PROPOSE", Body: jsontext.Value(`{"proposalId":"p1","type":"x","subject":"cups","terms":{"private":1}}`)}); !refused(err, session.SchemaInvalid) {
		t.Errorf("a PROPOSE with terms.private is answered %v", err)
	}
}

// TestSealed: what a hosted agent escalates is for its own side. A retry seals the same way, also after
// a restart, and no other act has its salts.
func TestSealed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Principal("human://acme.com/boss")
	id := w.opened("asp/1")
	said := api.Say{Session: id, Performative: "ESCALATE", Key: "k1", Body: jsontext.Value(`{"reason":"authority-limit","urgency":"high","context":{"limit":951234567890},"suggestedAction":"hold"}`)}
	first, err := w.says(buyer, said)
	testkit.Must(t, err)
	w.Down()
	w.Up()
	if again, err := w.says(buyer, said); err != nil || !again.Duplicate || again.Hash != first.Hash {
		t.Errorf("said again it is answered %+v, %v, at first %+v", again, err, first)
	}
	read := func(a performatives.Agent, id performatives.MessageID) (string, performatives.SealedParts) {
		var page api.Messages
		testkit.Must(t, w.Server.Broker.Service.As(a).Call(w.Ctx, api.SessionMessages.Verb, api.ListMessages{Session: first.Session, Message: id}, &page))
		return string(page.Messages[0]), page.Sealed[id]
	}
	entry, parts := read(buyer, first.Message)
	if strings.Contains(entry, "951234567890") || strings.Contains(entry, "hold") || string(parts[performatives.SealContext].Value) != `{"limit":951234567890}` || string(parts[performatives.SealSuggested].Value) != `"hold"` {
		t.Errorf("its side reads %s with %v", entry, parts)
	}
	if same, others := read(seller, first.Message); same != entry || others != nil {
		t.Errorf("the other side reads %s with %v", same, others)
	}
	_, err = w.Client("human://acme.com/boss").Session(id).Rule(w.Ctx, string(first.Message), client.Ruling{Decision: performatives.Denied})
	testkit.Must(t, err)
	said.Key = "k2"
	second, err := w.says(buyer, said)
	testkit.Must(t, err)
	if _, others := read(buyer, second.Message); others[performatives.SealContext].Salt == parts[performatives.SealContext].Salt {
		t.Errorf("two acts are sealed with the salt of %v", parts)
	}
}

// TestOpen: an installation may leave open what agents escalate.
func TestOpen(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewWorld(t, testkit.Options{OpenRulings: true, Dev: true})}
	id := w.opened("asp/1")
	w.must(buyer, id, "ESCALATE", `{"reason":"authority-limit","urgency":"high","context":{"limit":951234567890}}`)
	var page api.Messages
	testkit.Must(t, w.Server.Broker.Service.As(seller).Call(w.Ctx, api.SessionMessages.Verb, api.ListMessages{Session: id}, &page))
	if last := string(page.Messages[len(page.Messages)-1]); !strings.Contains(last, "951234567890") {
		t.Errorf("the other side reads %s", last)
	}
}
