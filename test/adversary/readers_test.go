package adversary

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// longest is how long an act of an innocent agent may take during an attack.
const longest = 3 * time.Second

// bound is how long it may take where it took alone at most that long in the same run: other
// packages' tests use the machine, too.
func bound(alone time.Duration) time.Duration { return longest + 10*alone }

// TestReaders: parallel reads of a session as large as sessions may be, over NATS and over HTTP. The
// reads are answered, the server drops none of the broker's connections, and the deal goes on.
// Nothing runs beside it, for it looks at times.
func TestReaders(t *testing.T) {
	core, log := observer.New(zap.InfoLevel)
	w := newWorld(t, func(o *testkit.Options) {
		o.Log, o.Limits.PrincipalBytes = zap.New(core), -1
		o.Limits.SessionBytes = testkit.Amount(limits.DefaultSessionBytes)
	})
	reader, mate := w.Principal(eve), w.Principal("agent://evil.example/mate")
	token := w.Token(api.AddToken{Agent: eve})
	id := w.Open(reader, mate)
	entries := 3
	for fact := strings.Repeat("x", 250_000); ; entries++ {
		if code := testkit.Code(t, reader.Submit(id, reader.Envelope(id, testkit.Fact(fmt.Sprint(entries, fact))))); code == session.TooLarge {
			break
		} else if code != "" {
			t.Fatalf("refused as %s", code)
		}
	}

	says := func(n int) (worst time.Duration) {
		for _, a := range []performatives.Agent{alpha, beta} {
			begun := time.Now()
			w.Principal(a).Say(w.deal, testkit.Fact(fmt.Sprint("still here ", n)))
			worst = max(worst, time.Since(begun))
		}
		return worst
	}
	alone := max(says(-3), says(-2), says(-1))
	const readers = 4
	var reading sync.WaitGroup
	for range readers {
		reading.Go(func() {
			if got := w.messages(reader.Conn(), eve, id); got != entries {
				t.Errorf("over NATS %d entries are read, want %d", got, entries)
			}
		})
		event := w.Events(testkit.SessionPath(id)+"/events?since_sequence=0", token, "")
		reading.Go(func() {
			for n := 0; n < entries; {
				switch e := event(); e.Name {
				case "message":
					n++
				case "":
					t.Errorf("over HTTP %d entries are read, want %d", n, entries)
					return
				}
			}
		})
	}
	over := make(chan struct{})
	go func() {
		reading.Wait()
		close(over)
	}()
	worst := time.Duration(0)
	for n, going := 0, true; going; n++ {
		select {
		case <-over:
			going = false
		default:
		}
		worst = max(worst, says(n))
	}
	if t.Logf("the slowest act took %s, alone %s", worst, alone); worst > bound(alone) {
		t.Errorf("an act took %s", worst)
	}
	for _, line := range log.All() {
		if text := fmt.Sprint(line.Message, line.ContextMap()); strings.Contains(text, "Slow Consumer") {
			t.Errorf("the server says: %s", text)
		}
	}
}

// messages reads a session page by page, and returns how many entries it has.
func (w *world) messages(nc *nats.Conn, a performatives.Agent, id performatives.SessionID) (n int) {
	next := uint64(0)
	for {
		request := fmt.Appendf(nil, `{"sessionId":%q,"since":%d}`, id, next)
		m, err := testkit.Request(nc, api.Call(a, api.SessionMessages.Name), request)
		if err != nil {
			w.Error(err)
			return n
		}
		var page api.Messages
		if err := json.Unmarshal(m.Data, &page, json.RejectUnknownMembers(false)); err != nil || len(page.Messages) == 0 {
			w.Errorf("a page from %d on is %.300s, %v", next, bytes.TrimSpace(m.Data), err)
			return n
		}
		if n += len(page.Messages); page.Next == nil {
			return n
		}
		next = *page.Next
	}
}
