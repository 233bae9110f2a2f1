//go:build long

package upgrade_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// holds compares every transcript and inbox with what was accepted: each act is in its place once, nobody else said
// anything, the chain verifies by the broker's key, and each party has every entry of the other once.
func (w *world) holds(talks []*talk) {
	w.Helper()
	transcripts := w.transcripts()
	for _, t := range talks {
		lines := transcripts[t.id]
		faults, err := transcript.Verify(bytes.NewReader(bytes.Join(lines, []byte("\n"))), w.key, transcript.Expect{Session: t.id, Length: len(t.accepted)})
		if err != nil || len(faults) > 0 {
			w.Errorf("%s session %s: %v %v", t.mode, t.id, faults, err)
			continue
		}
		for n, a := range t.accepted {
			e, err := transcript.Read(lines[n])
			testkit.Must(w, err)
			if uint64(n) != a.Sequence || e.Stamp.Hash != a.Hash || e.Message.ID != a.Message {
				w.Errorf("%s session %s: entry %d is %s, accepted was %+v", t.mode, t.id, n, e.Message.ID, a)
			}
		}
	}
	want := map[string]int{}
	for id, lines := range transcripts {
		for _, line := range lines {
			e, err := transcript.Read(line)
			testkit.Must(w, err)
			for _, party := range []performatives.Agent{alpha, beta} {
				if e.Message.Sender != party {
					want[api.Inbox(party, id)+" "+string(e.Stamp.Hash)]++
				}
			}
		}
	}
	testkit.Eventually(w, "all inboxes are whole", func() bool { return w.copies() >= len(want) })
	for copied, n := range w.delivered() {
		if n != want[copied] {
			w.Errorf("%s is in the inbox %d times, want %d", copied, n, want[copied])
		}
		delete(want, copied)
	}
	for missing := range want {
		w.Errorf("%s is not in the inbox", missing)
	}
}

// transcripts has the entries of all sessions as the stream has them, in order. A consumer would have them deleted.
func (w *world) transcripts() map[performatives.SessionID][][]byte {
	w.Helper()
	stream, err := w.js.Stream(w.ctx, api.SessionsStream)
	testkit.Must(w, err)
	all := map[performatives.SessionID][][]byte{}
	for n := stream.CachedInfo().State.FirstSeq; n <= stream.CachedInfo().State.LastSeq; n++ {
		m, err := stream.GetMsg(w.ctx, n)
		testkit.Must(w, err)
		id := performatives.SessionID(strings.TrimPrefix(m.Subject, "asp.session."))
		all[id] = append(all[id], m.Data)
	}
	return all
}

// copies is how many copies the inboxes of the parties have.
func (w *world) copies() (n int) {
	w.Helper()
	stream, err := w.js.Stream(w.ctx, api.InboxStream)
	testkit.Must(w, err)
	for _, party := range []performatives.Agent{alpha, beta} {
		info, err := stream.Info(w.ctx, jetstream.WithSubjectFilter(api.Inbox(party, "*")))
		testkit.Must(w, err)
		for _, on := range info.State.Subjects {
			n += int(on) //nolint:gosec // thousands
		}
	}
	return n
}

// delivered counts the copies by inbox, session and hash.
func (w *world) delivered() map[string]int {
	w.Helper()
	found := map[string]int{}
	consumer, err := w.js.OrderedConsumer(w.ctx, api.InboxStream, jetstream.OrderedConsumerConfig{FilterSubjects: []string{api.Inbox(alpha, "*"), api.Inbox(beta, "*")}})
	testkit.Must(w, err)
	for left := w.copies(); left > 0; {
		batch, err := consumer.Fetch(min(left, 1000))
		testkit.Must(w, err)
		for m := range batch.Messages() {
			e, err := transcript.Read(m.Data())
			testkit.Must(w, err)
			found[m.Subject()+" "+string(e.Stamp.Hash)]++
			left--
		}
		testkit.Must(w, batch.Error())
	}
	return found
}

// agrees asks the only broker that there is where sessions stand, and compares that with what was accepted last in each.
func (w *world) agrees(talks []*talk) {
	w.Helper()
	for _, t := range talks {
		var view api.SessionView
		testkit.Must(w, json.Unmarshal(w.alpha.Call(api.SessionGet.Name, fmt.Sprintf(`{"sessionId":%q}`, t.id)).Data, &view))
		if last := t.accepted[len(t.accepted)-1]; view.Head.Hash != last.Hash || view.State != last.State {
			w.Errorf("session %s is %s and ends with %s, want %+v", t.id, view.State, view.Head.Hash, last)
		}
	}
}

// verifies has a program verify and replay all sessions, and hold against them what is derived from them.
func (w *world) verifies(program string, sessions int) {
	w.Helper()
	out, err := exec.Command(program, "session", "verify", "--all", "--url", w.url, "--data", w.data, "--broker-key", string(w.key), "--timeout", "2m").CombinedOutput()
	if ok := bytes.Count(out, []byte("ok ")); err != nil || ok != sessions {
		w.Errorf("%s session verify --all: %v, %d sessions are ok, want %d\n%.4000s", program, err, ok, sessions, out)
	}
}
