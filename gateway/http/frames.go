package httpgateway

import (
	"context"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Frames that the server sends (GATEWAYS.md G2).
type (
	greeting struct {
		Type         string          `json:"type"` // auth_ok
		Session      string          `json:"sessionId"`
		State        string          `json:"state"`
		Participants []api.PartyView `json:"participants"`
		Last         *uint64         `json:"lastSequence"` // of the session
	}
	entryFrame struct {
		Type     string         `json:"type"` // message
		Envelope jsontext.Value `json:"envelope"`
	}
	stateFrame struct {
		Type        string `json:"type"` // session_state
		stateChange `json:",embed"`
	}
	ack struct {
		Type     string                  `json:"type"` // ack
		Message  performatives.MessageID `json:"messageId"`
		Sequence uint64                  `json:"sequenceNumber"`
	}
	beat struct {
		Type  string `json:"type"` // heartbeat
		At    string `json:"timestamp"`
		State string `json:"state"`
	}
	refused struct {
		Type    string                  `json:"type"` // error
		Code    session.Code            `json:"code"`
		Text    string                  `json:"message"`
		Message performatives.MessageID `json:"messageId,omitzero"`
	}
)

// A sending is a frame that a client sends after auth.
type sending struct {
	Type     string         `json:"type"` // send or pong
	Envelope jsontext.Value `json:"envelope,omitzero"`
	Said     api.Say        `json:",embed"`
}

// take answers a frame. The broker charges for what is sent; any other frame is charged here.
func (s *socket) take(ctx context.Context, in incoming) (pong bool, err error) {
	switch {
	case in.tooLarge:
		return false, errTooLarge
	case in.limited:
		return false, errLimited
	}
	ctx, end := gateway.Page(ctx)
	defer end() // or before the client is answered, which may take that slowly
	if err := s.c.EnterSlot(ctx, len(in.data)); err != nil {
		return false, s.closing(err)
	}
	var frame sending
	err = strictly(in.data, &frame, "type", "envelope?", "performative?", "body?", "recipient?", "constraints?", "messageId?", "open?")
	switch {
	case err != nil:
	case frame.Type != "send" && frame.Type != "pong":
		err = malformed("/type", "is send or pong")
	case frame.Envelope != nil && !reflect.ValueOf(frame.Said).IsZero():
		err = malformed("/envelope", "says all there is")
	}
	if err != nil || frame.Type == "pong" || s.c.ReadOnly {
		end()
		if err := s.charge(s.c.Caller); err != nil {
			return false, s.closing(err)
		}
	}
	switch {
	case err != nil:
		return false, s.fail(err, "")
	case frame.Type == "pong":
		return true, nil
	}
	id, accepted, err := s.submit(ctx, frame)
	end()
	if err != nil {
		return false, s.fail(err, id)
	}
	return false, s.write(ack{"ack", accepted.Message, accepted.Sequence})
}

// submit submits what a client sends, signed or to be signed; id is its messageId, as far as it has one.
func (s *socket) submit(ctx context.Context, frame sending) (id performatives.MessageID, accepted api.Acceptance, err error) {
	id = frame.Said.Message
	if frame.Envelope != nil {
		if m, err := performatives.Read(frame.Envelope); err == nil {
			id = m.ID
		}
	}
	switch {
	case s.c.ReadOnly:
		err = gateway.ErrReadOnly
	case frame.Envelope == nil:
		frame.Said.Session = s.c.session()
		accepted, err = s.c.say(ctx, frame.Said)
	default:
		accepted, err = s.c.Submit(ctx, s.c.session(), frame.Envelope)
	}
	return id, accepted, err
}

// fail tells the client of a refusal.
func (s *socket) fail(err error, id performatives.MessageID) error {
	refusal := s.c.g.service.Refusal(err)
	return s.write(refused{"error", refusal.Code, api.Refused(refusal).Error.Message, id})
}
