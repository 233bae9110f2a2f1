package broker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

// secret is in each act of a session that is to be erased.
const secret = "ZEBRA"

// told is a deal of three parties in which a human was asked; all of it says the secret.
func (w *shelf) told() *fault.Session {
	w.Helper()
	const checks = performatives.Agent("human://acme.com/checks")
	for _, human := range []performatives.Agent{alice, checks} {
		_, err := w.b.Broker.Parts.Registry.Add(w.Context(), api.Card{Agent: human})
		testkit.Must(w, err)
	}
	s := w.Open(alpha, beta, gamma)
	s.Say(alpha, "PROPOSE", `{"proposalId":"p1","type":"x","subject":"`+secret+`","terms":{"price":5,"of":"`+secret+`"}}`)
	asked := s.Say(alpha, "ESCALATE", `{"reason":"confidence-low","urgency":"high","context":"`+secret+`"}`)
	comment := fmt.Appendf(nil, `{"escalationId":%q,"text":%q}`, asked.Message, secret)
	m, err := w.b.Plain().Request(api.Call(alice, api.EscalationComment.Name), comment, testkit.Patience)
	testkit.Must(w, err)
	if m.Header.Get(api.ErrorCodeHeader) != "" {
		w.Fatalf("%s", m.Data)
	}
	s.Say(alice, "INFORM", fmt.Sprintf(`{"type":"resolution","data":{"escalationId":%q,"decision":"guidance","comment":%q}}`, asked.Message, secret))
	s.Say(beta, "ACCEPT", `{"referenceId":"p1"}`)
	s.Say(alpha, "DELEGATE", fmt.Sprintf(`{"targetAgent":%q,"scope":%q,"authority":"advisory"}`, checks, secret))
	s.Say(alpha, "CLOSE", "{}")
	return s
}

// left are the messages in all streams that say what a session said, or whose sessions it was.
func (w *shelf) left(id performatives.SessionID) (all []string) {
	w.Helper()
	reader, err := zstd.NewReader(nil)
	testkit.Must(w, err)
	defer reader.Close()
	var infos []*jetstream.StreamInfo
	streams := w.js.ListStreams(w.Context()) // which has to be read at once: its requests share one timeout
	for info := range streams.Info() {
		infos = append(infos, info)
	}
	testkit.Must(w, streams.Err())
	for _, info := range infos {
		s, err := w.js.Stream(w.Context(), info.Config.Name)
		testkit.Must(w, err)
		for n := max(1, info.State.FirstSeq); n <= info.State.LastSeq; n++ { // the first of an empty stream may be 0
			m, err := s.GetMsg(w.Context(), n)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue // it was deleted
			}
			testkit.Must(w, err)
			packed := m.Header.Get("Asp-Packed")
			if packed == "zstd-words-v1" {
				if m.Subject == api.Archive(id) {
					all = append(all, m.Subject)
				}
				continue // of another session
			}
			data := m.Data
			if packed != "" {
				if data, err = reader.DecodeAll(data, nil); err != nil {
					w.Fatalf("%s %d: %v", info.Config.Name, n, err)
				}
			}
			if bytes.Contains(data, []byte(secret)) || bytes.Contains(data, []byte(gamma)) && info.Config.Name == api.ArchiveIndexStream {
				all = append(all, fmt.Sprintf("%s %d: %s %s", info.Config.Name, n, m.Subject, data))
			}
		}
	}
	return all
}

// A refusal is why a call is refused.
type refusal struct {
	Code    session.Code `json:"code"`
	Message string       `json:"message"`
}

// refused is what a call is refused as.
func (w *shelf) refused(subject, request string) refusal {
	w.Helper()
	m, err := testkit.Request(w.b.Plain(), subject, []byte(request))
	if m == nil {
		w.Fatal(err)
	}
	var answer struct {
		Error refusal `json:"error"`
	}
	if m.Header.Get(api.ErrorCodeHeader) == "" {
		w.Errorf("%s %s: %s", subject, request, m.Data)
	} else {
		testkit.Must(w, json.Unmarshal(m.Data, &answer))
	}
	return answer.Error
}

// erased holds what is answered of an erased session against what was promised of it.
func (w *shelf) erased(id performatives.SessionID, entries uint64, head performatives.Hash) {
	w.Helper()
	var again api.ErasedSession
	ref := fmt.Sprintf(`{"sessionId":%q}`, id)
	if w.Call(api.SessionErase.Name, ref, &again); again.Entries != entries || again.Erased == "" {
		w.Errorf("erased again: %+v", again)
	}
	if left := w.left(id); len(left) > 0 {
		w.Errorf("it is left: %q", left)
	}
	var page api.Messages
	w.Call(api.SessionMessages.Name, ref, &page)
	var lines [][]byte
	for _, line := range page.Messages {
		lines = append(lines, line)
	}
	var info api.Broker
	w.Call(api.BrokerInfo.Name, "{}", &info)
	faults, err := transcript.Verify(bytes.NewReader(bytes.Join(lines, []byte("\n"))), info.Key, transcript.Expect{Head: head, Length: int(entries)}) //nolint:gosec // a count
	if err != nil || len(faults) > 0 || !transcript.IsErased(lines[0]) {
		w.Errorf("what is left: %v, %v", faults, err)
	}
	for _, verb := range []string{api.SessionGet.Name, api.SessionSnapshot.Name, api.SessionMessages.Name, api.SessionEvidence.Name} {
		none := w.refused(api.Call(alpha, verb), fmt.Sprintf(`{"sessionId":%q}`, newID()))
		if got := w.refused(api.Call(alpha, verb), ref); got != none {
			w.Errorf("%s: a participant is told %+v, and of no session %+v", verb, got, none)
		}
		if verb != api.SessionMessages.Name {
			if got := w.refused(api.OperatorCall(verb), ref); got.Code != session.UnknownSession {
				w.Errorf("%s: the operator is told %+v", verb, got)
			}
		}
	}
	for _, verb := range []string{api.SessionList.Name, api.AgreementList.Name, api.ObligationList.Name, api.DisputeList.Name, api.CheckList.Name} {
		m, err := testkit.Request(w.b.Plain(), api.Call(alpha, verb), []byte("{}"))
		if testkit.Must(w, err); bytes.Contains(m.Data, []byte(id)) {
			w.Errorf("%s: %s", verb, m.Data)
		}
	}
	var found api.Escalations
	if w.Call(api.EscalationList.Name, `{"status":"all"}`, &found); len(found.Escalations) > 0 {
		w.Errorf("its escalations are listed: %+v", found)
	}
	var held api.Held
	if w.Call(api.AuditSession.Name, ref, &held); held.Index == nil || held.Index.Erased != again.Erased || held.Index.Entries != entries || len(held.Index.Participants) > 0 || len(held.Copies) > 0 {
		w.Errorf("the row: %+v", held)
	}
}

// Of an erased session hashes and receipts are left, which verify, and the public log's proof; also after a
// restart and a crash. The sessions beside it stay as they were.
func TestErase(t *testing.T) {
	t.Parallel()
	w := newShelf(t, archive.Policy{After: time.Millisecond, Closed: 24 * time.Hour, Erasure: true})
	s := w.told()
	others := w.deals(3, 1)
	w.holds(api.ArchiveStream, 4)
	w.holds(api.IndexStream, 1)
	var view api.SessionView
	ref := fmt.Sprintf(`{"sessionId":%q}`, s.ID)
	w.Call(api.SessionGet.Name, ref, &view)
	before := strings.Join(w.left(s.ID), "\n")
	for _, stream := range []string{api.ArchiveIndexStream, api.InboxStream, api.EscalationsStream, api.CaseLogStream, api.Archive(s.ID)} {
		if !strings.Contains(before, stream) {
			t.Errorf("%s does not say what is to be erased: %s", stream, before)
		}
	}
	for id, code := range map[performatives.SessionID]session.Code{newID(): session.UnknownSession, others[3].ID: session.WrongState, "x": session.UnknownSession} {
		if got := w.refused(api.OperatorCall(api.SessionErase.Name), fmt.Sprintf(`{"sessionId":%q}`, id)); got.Code != code {
			t.Errorf("%s: %+v, want %s", id, got, code)
		}
	}
	if got := w.refused(api.Call(alpha, api.SessionErase.Name), ref); got.Code != session.MalformedEnvelope {
		t.Errorf("a principal: %+v", got)
	}
	var first api.ErasedSession
	w.Call(api.SessionErase.Name, ref, &first)
	for _, restart := range []func(){func() {}, func() { w.b.Down(); w.b.Up() }, func() { w.b.Crash(); w.b.Up() }} {
		restart()
		w.erased(s.ID, *view.Head.Sequence+1, view.Head.Hash)
		for _, code := range []string{
			s.Code(alpha, "OBSERVE", `{"subject":"late"}`),
			s.Code(alpha, "PROPOSE", `{"proposalId":"inv","type":"session-invitation","subject":"x","terms":{"participants":["`+string(beta)+`"]}}`),
		} {
			if code != string(session.UnknownSession) {
				t.Errorf("a late act: %s", code)
			}
		}
		for _, other := range others {
			other.Check(alpha, beta)
		}
		proof, _, err := w.b.Broker.Parts.Ledger.Receipted(t.Context(), inclusion.Session, string(s.ID))
		if err != nil || proof == nil || !bytes.Contains(proof.Leaf, []byte(view.Head.Hash)) {
			t.Errorf("the proof of its end: %+v, %v", proof, err)
		}
	}
	for stream, subject := range map[string]string{api.ArchiveStream: api.Archive(s.ID), api.ArchiveIndexStream: api.ArchiveIndexPage} {
		m, err := w.stream(stream).GetLastMsgForSubject(t.Context(), subject)
		testkit.Must(t, err)
		if ttl, err := time.ParseDuration(m.Header.Get(store.TTLHeader)); err != nil || ttl > 24*time.Hour || ttl < 23*time.Hour {
			t.Errorf("what is left in %s expires after %s, %v", stream, ttl, err)
		}
	}
	var last api.ErasedSession
	if w.Call(api.SessionErase.Name, ref, &last); last != first {
		t.Errorf("%+v, at first %+v", last, first)
	}
}

// Of a session that is no longer kept, what people were asked and told goes, too.
func TestExpiredLeaveNothing(t *testing.T) {
	t.Parallel()
	w := newShelf(t, archive.Policy{After: time.Millisecond, Closed: time.Second})
	kept := w.Open(alpha, beta)
	kept.Say(alpha, "ESCALATE", `{"reason":"confidence-low","urgency":"high","context":"kept"}`)
	s := w.told()
	testkit.Eventually(t, "what is left of the session is swept", func() bool {
		return !slices.ContainsFunc(w.left(s.ID), func(left string) bool {
			return strings.HasPrefix(left, api.EscalationsStream) || strings.HasPrefix(left, api.CaseLogStream)
		})
	})
	var asked api.Escalations
	w.Call(api.EscalationList.Name, `{"status":"all"}`, &asked)
	if len(asked.Escalations) != 1 || asked.Escalations[0].Session != kept.ID {
		t.Errorf("asked: %+v", asked.Escalations)
	}
}

// However far an erasure has come when the broker goes, saying it again completes it.
func TestEraseCrashes(t *testing.T) {
	t.Parallel()
	for _, point := range some(archive.ErasurePoints()) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newShelf(t, archive.Policy{After: time.Millisecond, Erasure: true})
			s := w.told()
			other := w.deals(1, 0)[0]
			w.holds(api.ArchiveStream, 2)
			w.holds(api.IndexStream, 0)
			var view api.SessionView
			ref := fmt.Sprintf(`{"sessionId":%q}`, s.ID)
			w.Call(api.SessionGet.Name, ref, &view)
			stopped := w.b.Broker.Command.StopAt(point)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-stopped; cancel() }()
			if _, err := w.b.Plain().RequestWithContext(ctx, api.OperatorCall(api.SessionErase.Name), []byte(ref)); err == nil {
				t.Error("it was answered")
			}
			<-stopped
			w.b.Crash()
			w.b.Up()
			w.erased(s.ID, *view.Head.Sequence+1, view.Head.Hash)
			other.Check(alpha, beta)
		})
	}
}

// What is not in the archive yet is not erased, and a store that denies deletion says so.
func TestEraseWaitsForTheArchive(t *testing.T) {
	t.Parallel()
	w := newShelf(t, archive.Policy{After: time.Hour, Erasure: true})
	s := w.deals(1, 0)[0]
	got := w.refused(api.OperatorCall(api.SessionErase.Name), fmt.Sprintf(`{"sessionId":%q}`, s.ID))
	if got.Code != session.WrongState || !bytes.Contains([]byte(got.Message), []byte("1h15m0s")) {
		t.Errorf("%+v", got)
	}
	s.Check(alpha, beta)
	known, err := w.js.Stream(t.Context(), api.ArchiveStream)
	testkit.Must(t, err)
	config := known.CachedInfo().Config
	config.DenyDelete = true
	_, err = w.js.UpdateStream(t.Context(), config) // as an earlier version does that joins
	testkit.Must(t, err)
	if got := w.refused(api.OperatorCall(api.SessionErase.Name), fmt.Sprintf(`{"sessionId":%q}`, s.ID)); got.Code != session.WrongState || !bytes.Contains([]byte(got.Message), []byte("restore")) {
		t.Errorf("%+v", got)
	}
	without := testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Second, Archive: archive.Policy{Erasure: true}})
	m, err := testkit.Request(without.Plain(), api.OperatorCall(api.SessionErase.Name), fmt.Appendf(nil, `{"sessionId":%q}`, newID()))
	if m == nil {
		t.Fatal(err)
	}
	testkit.Refused(t, m, session.WrongState)
}

// A broker that has the session cached drops it when another one erases it.
func TestEraseReachesPeers(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	archives := func(o *server.BrokerOptions) { o.Archive = archive.Policy{After: time.Millisecond, Erasure: true} }
	one, _ := at.OpenBroker(archives)
	two, _ := at.OpenBroker(archives)
	at.meet(one, two)
	w := fault.NewWitness(t, at.URL)
	s := w.Open(alpha, beta)
	s.Say(alpha, "CLOSE", "{}")
	get := func(b *server.Broker) error {
		_, err := b.Parts.Reads.SessionGet(t.Context(), api.Caller{Operator: true}, api.GetSession{Session: s.ID})
		return err
	}
	for _, b := range []*server.Broker{one, two} {
		testkit.Eventually(t, "the session is in the archive", func() bool { return b.Parts.List.PageOf(s.ID) > 0 && get(b) == nil && b.Command.InMemory(s.ID) })
	}
	var erased api.ErasedSession
	w.Call(api.SessionErase.Name, fmt.Sprintf(`{"sessionId":%q}`, s.ID), &erased)
	for _, b := range []*server.Broker{one, two} {
		testkit.Eventually(t, "it is erased at each broker", func() bool { return errors.Is(get(b), transcript.ErrErased) })
		if row, _ := b.Parts.List.Row(s.ID); len(row.Participants) > 0 {
			t.Errorf("the row: %+v", row)
		}
	}
	w.Call(api.SessionErase.Name, fmt.Sprintf(`{"sessionId":%q}`, s.ID), &erased)
	at.close(one)
	at.close(two)
}
