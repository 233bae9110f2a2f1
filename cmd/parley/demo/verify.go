package demo

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/session/transcript"
)

// A Result is the result of one scene.
type Result struct {
	Pattern  string                  `json:"pattern"`
	Title    string                  `json:"title"`
	Mode     string                  `json:"mode"`
	Session  performatives.SessionID `json:"sessionId"`
	Messages int                     `json:"messages"`
	State    session.Phase           `json:"state"`
	Outcome  string                  `json:"outcome"`
	Verified bool                    `json:"verified"` // offline, with only the broker's public key
	Faults   []string                `json:"faults,omitzero"`
}

// OK reports whether the scene ended as expected and verifies.
func (r *Result) OK() bool { return r.Verified && len(r.Faults) == 0 }

func (r *Result) fault(format string, args ...any) {
	r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
}

// check compares a scene with its expected result, and verifies the export.
func check(sc *scene, p played, broker performatives.Key) Result {
	r := Result{
		Pattern: sc.name, Title: sc.title, Mode: p.view.Mode, Session: p.id,
		Messages: len(p.received), State: p.view.State, Outcome: p.view.Closing,
	}
	if p.err != nil {
		r.fault("the scene failed: %s", p.err)
		return r
	}
	var acts []string
	for _, e := range p.entries {
		acts = append(acts, e.Message.ActName)
	}
	if !slices.Equal(acts, sc.acts) {
		r.fault("the acts were %s; expected %s", acts, sc.acts)
	}
	if r.State != session.Closed || r.Outcome != sc.outcome {
		r.fault("the session ended %s (%s); expected CLOSED (%s)", r.State, r.Outcome, sc.outcome)
	}
	if agreed := accepted(p.view); agreed != sc.agreed {
		r.fault("the accepted offer was %q; expected %q", agreed, sc.agreed)
	}
	before := len(r.Faults)
	r.verify(p, broker)
	r.Verified = len(r.Faults) == before
	return r
}

// accepted returns the ids of the accepted offers.
func accepted(v api.SessionView) string {
	var ids []string
	for _, o := range v.Proposals {
		if o.Status == session.Accepted.String() {
			ids = append(ids, o.Proposal)
		}
	}
	return strings.Join(ids, " ")
}

// verify checks the export with only the broker's public key: that it is complete
// and authentic, that the agents received the same, and, by a replay, that every
// act followed the rules.
func (r *Result) verify(p played, broker performatives.Key) {
	var file bytes.Buffer
	if err := transcript.Write(&file, p.entries); err != nil {
		r.fault("export: %s", err)
		return
	}
	expect := transcript.Expect{Session: p.id, Length: len(p.received)}
	if len(p.received) > 0 {
		expect.Head = p.received[len(p.received)-1].Stamp.Hash
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

// replay replays the transcript by the rules of the protocol and the mode.
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
