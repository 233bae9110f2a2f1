//go:build long

package upgrade_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// secret is what the session says that is erased.
const secret = "ZEBRA"

var told = script{"asp/1", append(opened("asp/1", `,"of":"`+secret+`"}`),
	line{alpha, performatives.Escalate, `{"reason":"confidence-low","urgency":"low","context":"` + secret + `"}`, session.Escalated},
	line{alice, performatives.Inform, `{"type":"resolution","data":{"escalationId":"{last}","decision":"guidance","comment":"` + secret + `"}}`, session.Conversing},
	line{alpha, performatives.Close, `{"outcome":"abandoned"}`, session.Closed},
)}

// TestErased has an older release open a store with a session that was erased. It knows no erasure: it leaves the session
// alone, and goes on with others. The newer one finds what is left in order, and erases nothing more in that store.
func TestErased(t *testing.T) {
	for name, format := range map[string]string{"before-keys": "8", "format-7": "7"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			e := &erased{load: &load{world: w, news: make(chan struct{}, 1)}}
			b := w.serves(now, "--archive-after", "1ms", "--erasure")
			w.connects()
			e.begins()
			b.ends(syscall.SIGTERM)
			b = w.serves(release(t, name), "--archive-after", "1ms")
			e.leavesAlone(b, format == "8")
			b.ends(syscall.SIGTERM)
			w.serves(now, "--archive-after", "1ms", "--erasure")
			e.isErased()
			if out, err := e.erases(); err == nil || !strings.Contains(out, "restore a backup") {
				t.Errorf("the store lets go of messages again: %v\n%s", err, out)
			}
		})
	}
}

// An erased world has an erased session, one that has ended, and one that is open.
type erased struct {
	*load
	gone, other, open *talk
}

// begins has the newer broker erase a session.
func (e *erased) begins() {
	e.Helper()
	for _, s := range []script{told, scripts[0]} {
		testkit.Must(e, e.negotiate(s))
	}
	e.gone, e.other, e.open = e.talks[0], e.talks[1], e.opens("asp/1")
	for _, line := range opened("asp/1", "}") {
		e.accepts(e.open, line)
	}
	if said := strings.Join(e.left(), " "); !strings.Contains(said, api.EscalationsStream) || !strings.Contains(said, api.InboxStream) {
		e.Errorf("there is too little to erase: %s", said)
	}
	testkit.Eventually(e, "the session is in the archive, and erased", func() bool {
		out, err := e.erases()
		if err != nil && !strings.Contains(out, "is not in the archive yet") && !strings.Contains(out, "(unavailable)") {
			e.Fatalf("%v\n%s", err, out)
		}
		return err == nil
	})
	e.isErased()
}

func (e *erased) erases() (string, error) {
	return e.runs(now, "session", "erase", string(e.gone.id), "--yes")
}

// leavesAlone has an older broker serve all but the erased session, as far as the format lets it.
func (e *erased) leavesAlone(b *broker, sameFormat bool) {
	e.Helper()
	e.isUnknown()
	for _, args := range [][]string{{"session", "verify", string(e.gone.id)}, {"session", "ls"}} {
		// The command repeats the request until its time is over, and says something else if that cuts off the last answer.
		testkit.Eventually(e, "the operator is told that it is unavailable", func() bool {
			out, err := e.runs(b.program, append(args, "--timeout", "1s")...)
			if err == nil {
				e.Fatalf("the operator asks for %q, and is answered\n%s", args, out)
			}
			return strings.Contains(out, "(unavailable)")
		})
	}
	b.logs(`this version does not know the compression \"zstd-erased\"`)
	if sameFormat {
		e.agrees([]*talk{e.other, e.open})
		e.accepts(e.open, observed)
		if m := e.alpha.Call(api.SessionList.Name, "{}"); !bytes.Contains(m.Data, []byte(e.open.id)) || bytes.Contains(m.Data, []byte(e.gone.id)) {
			e.Errorf("a participant has the sessions %s", m.Data)
		}
	} else {
		m, err := e.conns[alpha].Request(api.Submit(alpha, e.open.id), e.alpha.Envelope(e.open.id, testkit.Fact("x")), testkit.Patience)
		testkit.Must(e, err)
		testkit.Refused(e, m, session.Unavailable)
	}
	testkit.Must(e, e.negotiate(scripts[0]))
	e.saysNothing()
}

// isUnknown has participants told that there is no such session. They cannot open it anew.
func (e *erased) isUnknown() {
	e.Helper()
	anew := performatives.NewBody(performatives.Propose)
	testkit.Must(e, json.Unmarshal([]byte(inviting("asp/1")), anew))
	for _, m := range []*nats.Msg{
		e.alpha.Call(api.SessionGet.Name, fmt.Sprintf(`{"sessionId":%q}`, e.gone.id)),
		e.alpha.Call(api.SessionMessages.Name, fmt.Sprintf(`{"sessionId":%q}`, e.gone.id)),
		e.alpha.Submit(e.gone.id, e.alpha.Envelope(e.gone.id, testkit.Fact("x"))),
		e.alpha.Submit(e.gone.id, e.alpha.Envelope(e.gone.id, anew)),
	} {
		testkit.Refused(e, m, session.UnknownSession)
	}
}

// isErased has the newer broker verify what is left of the session, and everything else.
func (e *erased) isErased() {
	e.Helper()
	e.saysNothing()
	e.isUnknown()
	out, err := e.runs(now, "session", "verify", string(e.gone.id))
	if err != nil || !strings.Contains(out, fmt.Sprintf("%s  %d entries, CLOSED\n", e.gone.id, len(e.gone.accepted))) || !strings.Contains(out, "erased: what was said") {
		e.Errorf("what is left of the session: %v\n%s", err, out)
	}
	e.verifies(now, len(e.talks))
}

func (e *erased) saysNothing() {
	e.Helper()
	if left := e.left(); len(left) > 0 {
		e.Errorf("of the erased session there is %q", left)
	}
}

// left are the streams that have what the session said, once for each message.
func (e *erased) left() (all []string) {
	e.Helper()
	reader, err := zstd.NewReader(nil)
	testkit.Must(e, err)
	defer reader.Close()
	var infos []*jetstream.StreamInfo
	streams := e.js.ListStreams(e.ctx) // to be read at once: its requests share one timeout
	for info := range streams.Info() {
		infos = append(infos, info)
	}
	testkit.Must(e, streams.Err())
	for _, info := range infos {
		s, err := e.js.Stream(e.ctx, info.Config.Name)
		testkit.Must(e, err)
		for n := max(1, info.State.FirstSeq); n <= info.State.LastSeq; n++ {
			m, err := s.GetMsg(e.ctx, n)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue // it was deleted
			}
			testkit.Must(e, err)
			data := m.Data
			switch packed := m.Header.Get("Asp-Packed"); {
			case packed == "zstd-words-v1":
				if m.Subject == api.Archive(e.gone.id) {
					all = append(all, info.Config.Name)
				}
				continue // of another session
			case packed != "":
				data, err = reader.DecodeAll(data, nil)
				testkit.Must(e, err)
			}
			if bytes.Contains(data, []byte(secret)) {
				all = append(all, info.Config.Name)
			}
		}
	}
	return all
}
