package macpgateway

import (
	"bytes"
	"context"
	"encoding/base64"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/proto"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/gateway/macp/pb"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A history reads a session's entries as MACP's messages, from the first one.
type history struct {
	g         *Gateway
	name      string // what MACP calls the session
	view      view   // the session when the reading began
	start     *pb.SessionStartPayload
	roster    map[string]string // digests of principals, by those of their names when the session was started
	names     map[performatives.Agent]string
	ids       map[string]bool // of the messages so far
	proposals map[string]bool
	over      bool // MACP shows nothing of the session any more
}

// history begins to read a session, of which the caller has to be a part.
func (g *Gateway) history(ctx context.Context, c caller, id performatives.SessionID, name string) (*history, error) {
	h := &history{g: g, name: name, names: map[performatives.Agent]string{}, ids: map[string]bool{}, proposals: map[string]bool{}}
	var err error
	if h.view, err = c.view(ctx, id); err != nil {
		return h, err
	}
	if h.roster, err = g.readRoster(ctx, id); err != nil {
		return h, err
	}
	page, err := c.Messages(ctx, api.ListMessages{Session: id, Limit: 1})
	if err != nil || len(page.Messages) != 1 {
		return h, err
	}
	_, err = h.message(page.Messages[0])
	return h, err
}

// read emits the messages that a feed has.
func (h *history) read(ctx context.Context, feed *gateway.Feed, emit func(*pb.Envelope) error) error {
	if h.over {
		return nil
	}
	_, err := feed.Read(ctx, func(read gateway.Entry) (over bool, err error) {
		e, err := h.message(read.JSON)
		if e != nil && err == nil {
			err = emit(e)
		}
		return h.over, err
	})
	return err
}

// message is an entry as MACP's message; nil for what MACP has no message for, such as the
// acceptance of an invitation, a question or an escalation.
func (h *history) message(raw jsontext.Value) (*pb.Envelope, error) {
	e, err := api.ReadEntry(raw, nil)
	if err != nil {
		return nil, err
	}
	phase, _ := session.ParsePhase(e.Receipt.State)
	h.over = phase.Over() || phase == session.Executing
	if e.Sequence == 0 {
		clear(h.ids)
		return h.opening(e)
	}
	made, is := h.payload(e)
	if !is {
		return nil, nil //nolint:nilnil // MACP has no message for it
	}
	own := ownOf(e)
	if own == nil || own.GetMessageType() != made.GetMessageType() || !says(own, e) {
		own = made
	}
	h.shows(own, e)
	return own, nil
}

// shows makes a message of the session: what its sender says of version and mode nobody has checked, and an id that
// another message has would make clients drop this one.
func (h *history) shows(m *pb.Envelope, e api.Entry) {
	m.MacpVersion, m.Mode, m.Sender, m.SessionId = version, modeURI, h.nameOf(e), h.name
	if id := m.GetMessageId(); h.ids[id] || id == "" || len(id) > maxName {
		m.MessageId = string(e.Hash)
	}
	for h.ids[m.GetMessageId()] {
		m.MessageId += "-"
	}
	h.ids[m.GetMessageId()] = true
}

func (h *history) nameOf(e api.Entry) string {
	a := e.From
	if e.OnBehalfOf != "" {
		a = e.OnBehalfOf
	}
	if name, known := h.names[a]; known {
		return name
	}
	return h.g.nameOf(a)
}

// ownOf is MACP's own envelope, as its sender gave it; nil if there is none.
func ownOf(e api.Entry) *pb.Envelope {
	for _, item := range e.Context {
		var has map[string]jsontext.Value
		var coded string
		if json.Unmarshal(item, &has) != nil || json.Unmarshal(has[contextEntry], &coded) != nil {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(coded)
		own := &pb.Envelope{}
		if err == nil && proto.Unmarshal(raw, own) == nil {
			return own
		}
	}
	return nil
}

// says reports whether MACP's own envelope says what the act says, and nothing else: it comes
// from the act's sender, and nobody has checked it before.
func says(own *pb.Envelope, e api.Entry) bool {
	var body struct {
		Reference string `json:"referenceId"`
	}
	if json.Unmarshal(e.Body, &body) != nil {
		return false
	}
	a, err := actOf(own, body.Reference)
	if err != nil || a.performative.String() != e.Performative || legible(own) != nil {
		return false
	}
	want, err := json.Marshal(a.body)
	return err == nil && same(want, e.Body)
}

func same(a, b []byte) bool {
	x, err := performatives.Canonical(a)
	y, fault := performatives.Canonical(b)
	return err == nil && fault == nil && bytes.Equal(x, y)
}

// envelope is a message for an act that did not come by MACP.
func (h *history) envelope(e api.Entry, kind string, payload proto.Message) *pb.Envelope {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(payload)
	if err != nil {
		data = nil // unreachable: all texts come from JSON
	}
	return &pb.Envelope{
		MacpVersion: version, Mode: modeURI, MessageType: kind, MessageId: string(e.ID), TimestampUnixMs: e.Timestamp.UnixMilli(), Payload: data,
	}
}

// payload makes the message of an act.
func (h *history) payload(e api.Entry) (*pb.Envelope, bool) {
	var b struct {
		Proposal   string                    `json:"proposalId"`
		Reference  string                    `json:"referenceId"`
		Subject    string                    `json:"subject"`
		Terms      map[string]jsontext.Value `json:"terms"`
		Reason     string                    `json:"reason"`
		Terminal   bool                      `json:"terminal"`
		Commitment string                    `json:"commitmentId"`
		Action     string                    `json:"action"`
		Scope      string                    `json:"authorityScope"`
		Outcome    string                    `json:"outcome"`
		Policy     string                    `json:"policyVersion"`
	}
	if json.Unmarshal(e.Body, &b) != nil {
		return nil, false
	}
	p := performatives.Parse(e.Performative)
	if p == performatives.Propose || p == performatives.Counter && h.proposals[b.Reference] {
		h.proposals[b.Proposal] = true
	} else if p != performatives.Commit && !h.proposals[b.Reference] {
		return nil, false
	}
	switch p {
	case performatives.Propose:
		o := offered(b.Terms, b.Subject)
		return h.envelope(e, proposal, &pb.ProposalPayload{ProposalId: b.Proposal, Title: o.title, Summary: o.summary, Details: o.details, Tags: o.tags}), true
	case performatives.Counter:
		o := offered(b.Terms, b.Subject)
		return h.envelope(e, counter, &pb.CounterProposalPayload{
			ProposalId: b.Proposal, SupersedesProposalId: b.Reference, Title: o.title, Summary: o.summary, Details: o.details,
		}), true
	case performatives.Accept:
		return h.envelope(e, accept, &pb.AcceptPayload{ProposalId: b.Reference, Reason: b.Reason}), true
	case performatives.Withdraw:
		return h.envelope(e, withdraw, &pb.WithdrawPayload{ProposalId: b.Reference, Reason: b.Reason}), true
	case performatives.Reject:
		return h.envelope(e, reject, &pb.RejectPayload{ProposalId: b.Reference, Terminal: b.Terminal, Reason: b.Reason}), true
	case performatives.Commit:
		positive := b.Outcome != "rejected"
		if b.Action == "" {
			b.Action = map[bool]string{true: "proposal.accepted", false: "proposal.rejected"}[positive]
		}
		return h.envelope(e, commitment, &pb.CommitmentPayload{
			CommitmentId: b.Commitment, Action: b.Action, AuthorityScope: b.Scope, Reason: b.Reason, OutcomePositive: positive,
			ModeVersion: h.start.GetModeVersion(), ConfigurationVersion: h.start.GetConfigurationVersion(), PolicyVersion: b.Policy,
		}), true
	default:
		return nil, false
	}
}

// An offer is a proposal's terms in MACP.
type offer struct {
	title, summary string
	details        []byte
	tags           []string
}

// offered reads terms: those that are MACP's as such, all others as details.
func offered(terms map[string]jsontext.Value, subject string) (o offer) {
	own := true
	for name := range terms {
		own = own && (name == "title" || name == "summary" || name == "details" || name == "tags")
	}
	if own && json.Unmarshal(terms["title"], &o.title) == nil {
		json.Unmarshal(terms["summary"], &o.summary) //nolint:errcheck // absent, or no text
		json.Unmarshal(terms["tags"], &o.tags)       //nolint:errcheck // the same
		var text string
		if o.details = terms["details"]; json.Unmarshal(o.details, &text) == nil && !readAsJSON([]byte(text)) {
			o.details = []byte(text)
		}
		return o
	}
	o.title = subject
	if data, err := json.Marshal(terms, json.Deterministic(true)); err == nil {
		o.details = data
	}
	return o
}
