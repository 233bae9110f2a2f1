// Package approvals is the escalation inbox behind its verbs: the queue of what waits for a human,
// the case log of what humans do about it, and the routes that say who decides.
//
//	a, err := approvals.Open(ctx, approvals.Options{Store: s, Registry: r, Schema: schemas.Lookup, …})
//	if err != nil { … }
//	defer a.Close()
//	page, err := a.List(ctx, api.Caller{Agent: "human://acme.com/alice"}, api.ListEscalations{})
//
// Invariants:
//
//   - An approval is derived from the transcript of its session and from its case log. Reconcile
//     writes it, again after a crash; writing it twice changes nothing.
//   - The case log is in no transcript. Each action is appended to the subject of its approval if
//     that still ends where this broker thinks, so any number of brokers may write.
//   - An approval that has ended stays ended, and its votes and actions only become more.
//   - The humans of its organisation, their auditors and operators see all of an approval. Agents and
//     the other side see what is at stake and how it ended. Others learn nothing.
//   - An approval is bounded in bytes, whatever the offer, the question and the session have: long parts
//     are cut and marked, and read page by page.
package approvals

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/registry"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// Options say what is opened.
type Options struct {
	Store    *store.Store
	Registry *registry.Registry
	Schema   func(name string) (api.Schema, bool) // a terms schema
	Rules    *escalation.Rules                    // who decides what; nil is everybody who may
	Dev      bool                                 // humans whom the rules name and nobody registered may decide
	Log      *zap.Logger                          // nil is silent
	Now      func() time.Time                     // nil is time.Now

	// MayRead reports whether a caller may read a session. It does not load a session that does not name the caller.
	MayRead func(context.Context, api.Caller, performatives.SessionID) bool
	// Messages reads a page of a transcript for who sees its approval, with what it opens of what is sealed.
	Messages func(context.Context, api.Caller, api.ListMessages) (api.Messages, error)
	// Terms are those of an offer, in full.
	Terms func(ctx context.Context, id performatives.SessionID, offer string) (jsontext.Value, error)
	// Lapses reports whether an escalation that nobody answers ends its pause, and not the session.
	Lapses func(context.Context, performatives.SessionID, escalation.ID) (bool, error)
	// Reconcile calls Approvals.Reconcile with the session as it is now, and waits for it.
	Reconcile func(context.Context, performatives.SessionID) error
}

// Approvals is the escalation inbox of one broker, until it is closed.
type Approvals struct {
	o       Options
	rules   atomic.Pointer[escalation.Rules] // o.Rules at first
	queue   *queue
	changes *changes
	cases   *cases
	work    *background.Group

	stopWatches sync.Once
	stopped     chan struct{} // closed when watches are to answer
}

// Rules say who decides what, and what people are told of; nil is the defaults.
func (a *Approvals) Rules() *escalation.Rules { return a.rules.Load() }

// Open reads the inbox, follows it, and makes the consumers of the groups that the rules name.
func Open(ctx context.Context, o Options) (*Approvals, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &Approvals{o: o, cases: newCases(o.Store), changes: newChanges(), work: background.New(), stopped: make(chan struct{})}
	a.rules.Store(o.Rules)
	a.queue = newQueue(o.Now, a.cases.forget)
	for _, start := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"case logs", a.followCases},
		{"escalation items", a.followQueue},
		{"groups of approvers", func(ctx context.Context) error { return a.openGroups(ctx, o.Rules) }},
	} {
		if err := start.do(ctx); err != nil {
			a.Close()
			return nil, fmt.Errorf("%s: %w", start.what, err)
		}
	}
	return a, nil
}

// StopWatches has every watch answer now, and from now on at once.
func (a *Approvals) StopWatches() { a.stopWatches.Do(func() { close(a.stopped) }) }

// Close stops following the inbox. Consumers of groups stay: they are durable.
func (a *Approvals) Close() {
	a.StopWatches()
	a.work.Close()
}

// unknownEscalation answers for an approval that does not exist and for one that the caller may not
// see, in the same bytes.
func unknownEscalation() error {
	return session.Refuse(session.UnknownSession, "there is no such escalation, or you have no part in it")
}

func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most])
	}
	return s
}
