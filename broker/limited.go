package broker

import (
	"errors"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// limitedEvery is how often it is told that a principal asks too much: who does so asks thousands
// of times a second.
const limitedEvery = time.Second

// noSession stands for the session in an event that is about none.
const noSession = performatives.SessionID("-")

// limitings are when it was last told of whom, and how often it has happened since.
type limitings struct {
	mu    sync.Mutex
	told  map[performatives.Agent]limiting
	sweep int // look for old ones when there are so many
}

type limiting struct {
	at   time.Time
	more int
}

// tellLimited says to monitors and to the log that a principal asks too much.
func (b *Broker) tellLimited(a performatives.Agent, id performatives.SessionID, err error) {
	var refusal *session.Refusal
	if !errors.As(err, &refusal) {
		return
	}
	now := b.Now()
	n := b.limitings.count(a, now)
	if n == 0 {
		return
	}
	b.Log.Debug("a principal asks too much", zap.String("agent", string(a)), zap.Int("times", n), zap.Error(err))
	b.tell(id, "limited", map[string]any{
		"sessionId": id, "sender": a, "code": refusal.Code, "times": n, "details": refusal.Details, "at": now.UTC().Format(time.RFC3339Nano),
	})
}

// count notes a refusal and returns how many there are to tell of; 0 is none yet.
func (l *limitings) count(a performatives.Agent, now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.told[a]
	if now.Sub(last.at) < limitedEvery {
		last.more++
		l.told[a] = last
		return 0
	}
	if len(l.told) >= l.sweep {
		maps.DeleteFunc(l.told, func(_ performatives.Agent, of limiting) bool { return now.Sub(of.at) >= limitedEvery })
		l.sweep = max(fewShares, 2*len(l.told))
	}
	if l.told == nil {
		l.told = map[performatives.Agent]limiting{}
	}
	l.told[a] = limiting{at: now}
	return last.more + 1
}
