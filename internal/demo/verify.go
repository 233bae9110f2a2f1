package demo

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/modes"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/transcript"
)

// A Result is what came of one scene.
type Result struct {
	Pattern  string                  `json:"pattern"`
	Title    string                  `json:"title"`
	Mode     string                  `json:"mode"`
	Session  performatives.SessionID `json:"sessionId"`
	Messages int                     `json:"messages"`
	State    session.Phase           `json:"state"`
	Outcome  string                  `json:"outcome"`
	Verified bool                    `json:"verified"` // offline, with the broker's public key alone
	Faults   []string                `json:"faults,omitzero"`
}

// OK tells whether the scene went as it should, and verifies.
func (r *Result) OK() bool { return r.Verified && len(r.Faults) == 0 }

func (r *Result) fault(format string, args ...any) {
	r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
}

// judge compares what happened with what should have, and verifies the export.
func judge(sc *scene, p played, broker performatives.Key) Result {
	r := Result{
		Pattern: sc.name, Title: sc.title, Mode: sc.mode(), Session: p.id,
		Messages: len(p.heard), State: p.view.State, Outcome: p.view.Closing,
	}
	if p.err != nil {
		r.fault("the scene broke off: %s", p.err)
		return r
	}
	if steps := steps(p.entries); steps != sc.steps {
		r.fault("the acts were %s; expected were %s", steps, sc.steps)
	}
	if r.State != session.Closed || r.Outcome != sc.outcome {
		r.fault("the session ended %s (%s); expected was CLOSED (%s)", r.State, r.Outcome, sc.outcome)
	}
	if agreed := accepted(p.view); agreed != sc.agreed {
		r.fault("agreed was %q; expected was %q", agreed, sc.agreed)
	}
	before := len(r.Faults)
	r.verify(p, broker)
	r.Verified = len(r.Faults) == before
	return r
}

// accepted names the offers that were.
func accepted(v api.SessionView) string {
	var ids []string
	for _, o := range v.Proposals {
		if o.Status == session.Accepted.String() {
			ids = append(ids, o.Proposal)
		}
	}
	return strings.Join(ids, " ")
}

func steps(entries []transcript.Entry) string {
	acts := make([]string, len(entries))
	for i, e := range entries {
		acts[i] = e.Message.ActName
	}
	return strings.Join(acts, " → ")
}

// verify checks the export with nothing but the broker's public key: that it is
// whole and genuine, that it is what the agents were told, and, by a replay,
// that every act kept the rules.
func (r *Result) verify(p played, broker performatives.Key) {
	var file bytes.Buffer
	if err := transcript.Write(&file, p.entries); err != nil {
		r.fault("export: %s", err)
		return
	}
	expect := transcript.Expect{Session: p.id, Length: len(p.heard)}
	if len(p.heard) > 0 {
		expect.Head = p.heard[len(p.heard)-1].Stamp.Hash
	}
	faults, err := transcript.Verify(bytes.NewReader(file.Bytes()), broker, expect)
	if err != nil {
		r.fault("transcript: %s", err)
	}
	for _, f := range faults {
		r.fault("transcript: %s", f)
	}
	if err == nil && len(faults) == 0 {
		r.replay(p, file.Bytes())
	}
}

// replay folds what is genuine again, by the rules of the protocol and of the
// session's mode.
func (r *Result) replay(p played, file []byte) {
	entries, err := transcript.ReadAll(bytes.NewReader(file))
	if err != nil {
		r.fault("transcript: %s", err)
		return
	}
	state := session.New(p.id, modes.All())
	for _, e := range entries {
		if state, err = session.Replay(state, e.Message, e.Stamp); err != nil {
			r.fault("replay: %s", err)
			return
		}
	}
	if state.Phase != p.view.State || state.Closing != p.view.Closing {
		r.fault("replay: it ends %s (%s); the broker said %s (%s)", state.Phase, state.Closing, p.view.State, p.view.Closing)
	}
}
