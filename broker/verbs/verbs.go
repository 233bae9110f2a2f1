// Package verbs answers calls of verbs: it finds what answers each, asks whether the caller may call it, reads
// the request as its type, and bounds how many calls are answered at once.
package verbs

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/broker/registry"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/internal/telemetry"
	"github.com/parley-asp/parley/session"
)

// An Answer is a verb and what answers it.
type Answer struct {
	api.Verb
	act  bool // it waits for its session as an act does
	call func(context.Context, api.Caller, []byte) (reply any, then func(), err error)
}

// Handle has a verb answered. The compiler checks the types of request and reply.
func Handle[Q, A any](v api.VerbOf[Q, A], call func(context.Context, api.Caller, Q) (A, error)) Answer {
	return HandleThen(v, func(ctx context.Context, c api.Caller, q Q) (A, func(), error) {
		reply, err := call(ctx, c, q)
		return reply, nil, err
	})
}

// HandleAct is Handle for a verb that says an act. It takes no slot of the calls, where it would keep
// others from theirs while it waits for its session: its act is judged in a slot of the acts, and like
// these it is bounded by what its principal may have in flight. A large one is made in a slot of the large.
func HandleAct[Q, A any](v api.VerbOf[Q, A], call func(context.Context, api.Caller, Q) (A, error)) Answer {
	a := Handle(v, call)
	a.act = true
	return a
}

// HandleThen is Handle for a verb that has something left to do once its reply
// is on its way, or has failed: then, which may be nil.
func HandleThen[Q, A any](v api.VerbOf[Q, A], call func(context.Context, api.Caller, Q) (reply A, then func(), err error)) Answer {
	return Answer{Verb: v.Verb, call: func(ctx context.Context, c api.Caller, data []byte) (any, func(), error) {
		var request Q
		if err := readRequest(data, &request); err != nil {
			return nil, nil, err
		}
		if v.Waits {
			limits.Leave(ctx)
		}
		return call(ctx, c, request)
	}}
}

// byName holds the answers against a table of verbs: every verb has one answer,
// and there is no other.
func byName(table []api.Verb, answers []Answer) (map[string]Answer, error) {
	found := make(map[string]Answer, len(answers))
	for _, a := range answers {
		if _, twice := found[a.Name]; twice {
			return nil, fmt.Errorf("verb %s has two answers", a.Name)
		}
		found[a.Name] = a
	}
	for _, v := range table {
		if _, answered := found[v.Name]; !answered {
			return nil, fmt.Errorf("verb %s has no answer", v.Name)
		}
	}
	if len(found) > len(table) {
		return nil, fmt.Errorf("there are answers to %d verbs that the table does not have", len(found)-len(table))
	}
	return found, nil
}

// Options say what a Service answers, and for whom.
type Options struct {
	Answers  []Answer // one to every verb
	Registry *registry.Registry
	Accounts *limits.Accounts // of callers
	Begin    func() bool      // counts a call as work until End, unless the broker is closing
	End      func()
	Work     *background.Group // answers end with it
	Traces   *telemetry.Traces // nil exports nothing
}

// A Service answers calls of verbs.
type Service struct {
	o     Options
	verbs map[string]Answer // by name
	slots *limits.Scheduler
}

// New finds the answer to every verb.
func New(o Options) (*Service, error) {
	found, err := byName(api.Verbs(), o.Answers)
	return &Service{o, found, o.Accounts.Scheduler(maxCalls, maxWaitingCalls)}, err
}

// callTimeout bounds one api call.
const callTimeout = 10 * time.Second

// Bounds of api calls.
const (
	maxCalls        = 16   // that are answered at once
	maxWaitingCalls = 1024 // that wait for that; then one more of each principal may
)

// Call calls a verb and answers once, after release. A last answer must have left
// when answer returns: what follows may close the caller's connection.
func (s *Service) Call(parent context.Context, c api.Caller, verb string, request []byte, release func(), answer func(reply any, last bool, err error)) {
	v, wait, err := s.begin(c, verb, len(request))
	if err != nil {
		release()
		answer(nil, false, err)
		return
	}
	go func() {
		defer s.o.End()
		s.answer(parent, c, v, request, wait, release, answer)
	}()
}

// begin counts a call as work, unless the caller may not make it, or too many wait for their
// turn. wait waits for the call's own.
func (s *Service) begin(c api.Caller, verb string, size int) (v Answer, wait func(context.Context) (*limits.Slot, error), err error) {
	if v, err = s.callable(c, verb); err != nil {
		return v, nil, err
	}
	if !s.o.Begin() {
		return v, nil, session.Busy()
	}
	large := s.o.Accounts.LargeJudged(size)
	if v.Access == api.Read && !v.Waits {
		large = nil // its request is small by nature, and it may read for long
	}
	if large == nil && (v.Waits || v.act) { // it works little, so it takes nobody's slot
		return v, nil, nil
	}
	wait, joined := cmp.Or(large, s.slots).Join(c.Agent)
	if !joined {
		s.o.End()
		return v, nil, session.Busy()
	}
	return v, wait, nil
}

// callable finds what answers a verb that the caller may call.
func (s *Service) callable(c api.Caller, verb string) (Answer, error) {
	role := api.Principal
	if c.Operator {
		role = api.Operator
	}
	v, known := s.verbs[verb]
	if !known || v.Role == api.Operator && !c.Operator {
		return v, session.Refuse(session.MalformedEnvelope, "there is no verb %.40q; there is %s", verb, strings.Join(api.VerbNames(role), ", "))
	}
	if _, registered := s.o.Registry.Member(c.Agent); !c.Operator && !registered {
		return v, session.Refuse(session.UnknownAgent, "you are not registered")
	}
	if !v.Auditors {
		return v, s.o.Registry.RefuseAuditors(c)
	}
	return v, nil
}

func (s *Service) answer(parent context.Context, c api.Caller, v Answer, request []byte, wait func(context.Context) (*limits.Slot, error), release func(), tell func(reply any, last bool, err error)) {
	defer release()
	within := callTimeout
	if v.Waits {
		within = api.LongestWait + callTimeout
	}
	ctx, cancel := context.WithTimeout(s.o.Work.Context(), within) // the wait for a slot counts
	defer cancel()
	ctx, ended := s.o.Traces.Call(ctx, parent, v.Name)
	if wait != nil {
		slot, err := wait(ctx)
		if err != nil {
			release()
			ended(string(session.Unavailable))
			tell(nil, false, session.Busy())
			return
		}
		defer slot.Release()
		ctx = slot.WithSlot(ctx)
	}
	if v.Waits {
		release()
	}
	reply, then, err := v.call(ctx, c, request)
	if then != nil {
		defer then()
	}
	if err != nil {
		ended(string(session.CodeOf(err)))
	} else {
		ended("")
	}
	release() // whoever has the answer may ask the next
	tell(reply, then != nil, err)
}
