package fault

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// A history is what several clients asked about one session and were answered,
// with the times of asking and answer. It has to be that of an append-only log:
// there is one order of all that took effect, within those times, in which each
// answer is what the log had to say (it is linearizable). While readings may lag,
// they and refusals are what the log had to say that long before, at most.
type history struct {
	mu   sync.Mutex
	ops  []porcupine.Operation
	acts map[performatives.MessageID]*sent
	old  []lag
}

// A lag is a time in which readings and refusals may be old, by so much.
type lag struct{ from, to, by int64 }

// A sent act has an answer or not, yet.
type sent struct {
	at                int64 // when it was sent first
	answered, refused bool
}

// What is asked of a log.
type (
	// An appends is an act that was accepted as this entry.
	appends struct{ entry uint64 }
	// A holds is an answer that says the log holds this entry already.
	holds struct{ entry uint64 }
	// An ends is a reading of where the log ends.
	ends struct{ next uint64 }
	// A lost is an act that wanted to be this entry, where the log ended elsewhere.
	lost struct{ want, next uint64 }
)

// legal is what a log of so many entries says to it, and what it is after it.
func legal(state, asked, _ any) (bool, any) {
	length := state.(uint64)
	switch a := asked.(type) {
	case appends:
		return a.entry == length, length + 1
	case holds:
		return a.entry < length, length
	case ends:
		return a.next == length, length
	case lost:
		return a.next == length && a.want != length, length
	}
	return false, length
}

var log = porcupine.Model{Init: func() any { return uint64(0) }, Step: legal}

var epoch = time.Now()

func now() int64 { return time.Since(epoch).Nanoseconds() }

func (h *history) note(asked any, called int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{Input: asked, Call: called, Return: now()})
}

// sends notes an act on its way, if it was not on its way before.
func (h *history) sends(id performatives.MessageID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.acts == nil {
		h.acts = map[performatives.MessageID]*sent{}
	}
	if h.acts[id] == nil {
		h.acts[id] = &sent{at: now()}
	}
}

// accepted notes an answer to an act, the first if it was sent more often.
func (h *history) accepted(id performatives.MessageID, entry uint64) {
	if called, first := h.answer(id, false); first {
		h.note(appends{entry}, called)
	}
}

// refused notes that an act took no effect.
func (h *history) refused(id performatives.MessageID, want, next uint64) {
	if called, first := h.answer(id, true); first {
		h.note(lost{want, next}, called)
	}
}

func (h *history) answer(id performatives.MessageID, refused bool) (called int64, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.acts[id]
	first = !a.answered
	a.answered, a.refused = true, a.refused || refused && h.lag(now()) == 0
	return a.at, first
}

// mayLag allows readings and refusals to be old by so much from now on, until that long after the
// function that it returns is called.
func (h *history) mayLag(by time.Duration) (until func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.old)
	h.old = append(h.old, lag{from: now(), to: math.MaxInt64, by: by.Nanoseconds()})
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.old[n].to = now() + by.Nanoseconds()
	}
}

// MayLag allows readings and refusals to be old by so much, until that long after the function
// that it returns is called. Acceptances never are old.
func (s *Session) MayLag(by time.Duration) (until func()) { return s.history.mayLag(by) }

// lags reports whether a refusal of that time may be old.
func (h *history) lags(at int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lag(at) > 0
}

// lag is how old an answer of that time may be. The caller holds mu.
func (h *history) lag(at int64) int64 {
	for _, l := range h.old {
		if at >= l.from && at <= l.to {
			return l.by
		}
	}
	return 0
}

// operations are those noted; what may be old counts as asked that much earlier. The caller holds mu.
func (h *history) operations() []porcupine.Operation {
	ops := append([]porcupine.Operation{}, h.ops...)
	for i, op := range ops {
		switch op.Input.(type) {
		case ends, lost:
			ops[i].Call -= h.lag(op.Return)
		}
	}
	return ops
}

// takesBack reports whether an entry is an act that was refused.
func (h *history) takesBack(e transcript.Entry) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.acts[e.Message.ID]
	return a != nil && a.refused
}

// why names answers of a history that is not linearizable which came too late or
// too early for what they say, if it is as simple as that.
func (h *history) why() (found []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ops := h.operations()
	for _, a := range ops {
		entry, ok := a.Input.(appends)
		for _, b := range ops {
			next := uint64(math.MaxUint64)
			switch asked := b.Input.(type) {
			case ends:
				next = asked.next
			case lost:
				next = asked.next
			case appends:
				next = asked.entry
			}
			if ok && entry.entry >= next && a.Return < b.Call {
				found = append(found, fmt.Sprintf("%s after the start entry %d was accepted, and %s later somebody asked and was answered %+v after another %s",
					time.Duration(a.Return), entry.entry, time.Duration(b.Call-a.Return), b.Input, time.Duration(b.Return-b.Call)))
				break
			}
		}
	}
	return found[:min(len(found), 5)]
}

// linearizable judges the history against the transcript that is left. Entries
// that nobody was promised, such as the broker's own, were appended at some time.
func (h *history) linearizable(entries []transcript.Entry) porcupine.CheckResult {
	h.mu.Lock()
	defer h.mu.Unlock()
	ops, promised := h.operations(), map[uint64]bool{}
	for _, op := range h.ops {
		if asked, is := op.Input.(appends); is {
			promised[asked.entry] = true
		}
	}
	for n, e := range entries {
		if promised[uint64(n)] {
			continue
		}
		op := porcupine.Operation{Input: appends{uint64(n)}, Return: math.MaxInt64}
		if a := h.acts[e.Message.ID]; a != nil {
			op.Call = a.at
		}
		ops = append(ops, op)
	}
	for i := range ops {
		ops[i].ClientId = i
	}
	return porcupine.CheckOperationsTimeout(log, ops, testkit.Patience)
}
