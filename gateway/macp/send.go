package macpgateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"google.golang.org/protobuf/proto"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/gateway/macp/pb"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// Send says one message.
func (g *Gateway) Send(ctx context.Context, q *pb.SendRequest) (*pb.SendResponse, error) {
	e := q.GetEnvelope()
	if e == nil {
		return nil, g.status(ctx, problem{invalidRequest, "a SendRequest has an envelope"})
	}
	c, err := g.acting(ctx)
	var s sent
	if err == nil {
		s, err = g.send(ctx, c, e)
	}
	if err != nil {
		return &pb.SendResponse{Ack: g.nack(e, s.offer, err)}, nil
	}
	return &pb.SendResponse{Ack: s.ack(e)}, nil
}

// A sent is a message that was accepted.
type sent struct {
	api.Acceptance
	offer string
}

// nack is the answer to a message that was refused.
func (g *Gateway) nack(e *pb.Envelope, offer string, err error) *pb.Ack {
	a := &pb.Ack{MessageId: e.GetMessageId(), SessionId: e.GetSessionId(), AcceptedAtUnixMs: time.Now().UnixMilli()}
	if errors.Is(err, &session.Refusal{Code: session.SessionEscalated}) {
		a.SessionState = pb.SessionState_SESSION_STATE_SUSPENDED
	}
	a.Error = g.problem(err, offer).message(e)
	return a
}

func (s sent) ack(e *pb.Envelope) *pb.Ack {
	a := &pb.Ack{Ok: true, Duplicate: s.Duplicate, MessageId: e.GetMessageId(), SessionId: e.GetSessionId(), SessionState: pb.SessionState_SESSION_STATE_OPEN}
	if at, err := time.Parse(time.RFC3339Nano, s.AcceptedAt); err == nil {
		a.AcceptedAtUnixMs = at.UnixMilli()
	}
	if e.GetMessageType() == commitment {
		a.SessionState = pb.SessionState_SESSION_STATE_RESOLVED
	}
	return a
}

// noPart is the answer to who has no part in a session, as to who names one that there is not.
var noPart = problem{forbidden, "there is no such session, or you take no part in it"}

// notSender is the answer to a message of somebody else's.
var notSender = problem{unauthenticated, "the token is not the sender's"}

// send says a message as its sender.
func (g *Gateway) send(ctx context.Context, c caller, e *pb.Envelope) (s sent, err error) {
	if err := check(e); err != nil {
		return s, err
	}
	ctx, end := gateway.Page(ctx)
	defer end()
	if sender := e.GetSender(); sender != "" && sender != c.name && sender != string(c.Agent) {
		return s, notSender
	}
	own := proto.CloneOf(e)
	own.Sender = c.name
	if e.GetMessageType() == start {
		return g.start(ctx, c, own)
	}
	id, err := g.find(ctx, e.GetSessionId())
	if err != nil {
		return s, hidden(err)
	}
	v, err := c.view(ctx, id)
	if err != nil {
		return s, hidden(err)
	}
	if err := c.EnterSlot(ctx, len(own.GetPayload())); err != nil {
		return s, err
	}
	a, err := actOf(own, v.part.Projection.Accepted)
	if err == nil {
		err = legible(own)
	}
	if err == nil && a.performative == performatives.Commit {
		err = g.sameVersions(ctx, c, id, own)
	}
	s.offer = a.offer
	if err != nil {
		return s, err
	}
	said, err := a.says(own)
	if err != nil {
		return s, err
	}
	said.Session, said.Key = id, keyOf(e)
	s.Acceptance, err = c.Say(ctx, said)
	return s, hidden(err)
}

// keyOf is what a message is retried by.
func keyOf(e *pb.Envelope) string { return "macp " + e.GetSessionId() + " " + e.GetMessageId() }

// hidden tells a non-participant nothing of a session.
func hidden(err error) error {
	own, is := errors.AsType[problem](err)
	if is && own.code == sessionNotFound || errors.Is(err, &session.Refusal{Code: session.UnknownSession}) {
		return noPart
	}
	return err
}

// check refuses an envelope that is none of this mode's.
func check(e *pb.Envelope) error {
	switch {
	case e.GetMacpVersion() != version:
		return problem{unsupportedVersion, "macp_version is " + version}
	case e.GetMessageType() == "" || e.GetMessageId() == "" || len(e.GetMessageId()) > maxName:
		return invalid("an envelope has a message_type, and a message_id of at most %d bytes", maxName)
	case e.GetSessionId() == "" || e.GetMode() == "":
		return invalid("an envelope has a session_id and a mode; signals and progress are not carried")
	case e.GetMode() != modeURI:
		return problem{modeNotSupported, "the mode is " + modeURI}
	case !validSession(e.GetSessionId()):
		return problem{invalidSessionID, "a session_id is a UUID of version 4 or 7 in lower case, or 22 to 128 characters of base64url"}
	}
	return nil
}

var (
	uuidShape = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)
	uuidWord  = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	base64url = regexp.MustCompile(`^[A-Za-z0-9_-]{22,128}$`)
)

func validSession(id string) bool {
	if uuidShape.MatchString(id) {
		return uuidWord.MatchString(id)
	}
	return base64url.MatchString(id)
}

// start opens a session, and accepts for those who have accepted in advance.
func (g *Gateway) start(ctx context.Context, c caller, e *pb.Envelope) (s sent, err error) {
	r, err := readStart(e, g.named)
	if err != nil {
		return s, err
	}
	if r.start.GetModeVersion() != modeVersion { // not in readStart: sessions of before stay readable
		return s, problem{modeNotSupported, "the mode_version is " + modeVersion}
	}
	said, err := g.invites(ctx, c, e, r)
	if err != nil {
		return s, err
	}
	for _, a := range append(r.parties, c.Agent) {
		if err := g.meet(ctx, a); err != nil {
			return s, err
		}
	}
	said.Key = keyOf(e)
	if said.Session, err = g.unstarted(ctx, c, e); err != nil {
		return s, err
	}
	s.Acceptance, err = c.Say(ctx, said)
	for _, taken := range []session.Code{session.WrongState, session.UnknownSession, session.SessionEscalated} {
		if errors.Is(err, &session.Refusal{Code: taken}) {
			return s, nameTaken
		}
	}
	if err != nil {
		return s, err
	}
	id := s.Session
	if err := g.names(ctx, c, e.GetSessionId(), id); err != nil {
		return s, err
	}
	if err := g.keepRoster(ctx, id, c, r); err != nil {
		return s, err
	}
	accepts := api.Say{Session: id, Key: "macp " + e.GetSessionId(), Performative: performatives.Accept.String()}
	accepted := performatives.AcceptBody{ReferenceID: invitation, Reason: "accepted in advance", InAdvance: true} // which consents to nothing
	if accepts.Body, err = json.Marshal(&accepted, json.Deterministic(true)); err != nil {
		return s, err
	}
	for _, a := range r.parties {
		card, _ := g.o.Card(a)
		if a == c.Agent || !card.MACP {
			continue
		}
		_, err := g.o.Service.As(a).Say(ctx, accepts)
		// Who signs for itself answers itself; of a start that is sent again all is over; and whose
		// context forbids the session has not accepted in advance.
		refusal, is := errors.AsType[*session.Refusal](err)
		if err != nil && (!is || !slices.Contains([]session.Code{session.Unauthorized, session.WrongState, session.ModeViolation}, refusal.Code)) {
			return s, err
		}
	}
	return s, nil
}

// sessionKey is where the id of a session is.
func sessionKey(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "session." + hex.EncodeToString(sum[:])
}

// find is the session that MACP knows by an id. A UUIDv7 is a session's own.
func (g *Gateway) find(ctx context.Context, id string) (performatives.SessionID, error) {
	if own, err := performatives.ParseSessionID(id); err == nil {
		return own, nil
	}
	if !validSession(id) {
		return "", problem{sessionNotFound, "there is no such session"}
	}
	found, err := g.o.Records.Get(ctx, sessionKey(id))
	if errors.Is(err, store.ErrNoKey) {
		return "", problem{sessionNotFound, "there is no such session"}
	}
	return performatives.SessionID(found.Value), err
}

var nameTaken = problem{sessionExists, "the session_id is used already"}

// unstarted is the session that a SessionStart opens, or has opened before; "" is a new one.
// What has another session by this name is refused.
func (g *Gateway) unstarted(ctx context.Context, c caller, e *pb.Envelope) (performatives.SessionID, error) {
	if own, err := performatives.ParseSessionID(e.GetSessionId()); err == nil {
		return own, nil
	}
	found, err := g.find(ctx, e.GetSessionId())
	if own, is := errors.AsType[problem](err); is && own.code == sessionNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	before, _, accepted, err := c.Before(ctx, keyOf(e), "")
	if err == nil && (!accepted || before != found) {
		err = nameTaken
	}
	return "", err
}

// names keeps the name of a session that was started. If another got the name meanwhile, the
// invitation is taken back. Only sessions that there are have records, so refusals leave none.
func (g *Gateway) names(ctx context.Context, c caller, name string, id performatives.SessionID) error {
	if name == string(id) {
		return nil
	}
	_, err := g.o.Records.Create(ctx, sessionKey(name), []byte(id))
	if errors.Is(err, store.ErrKeyExists) {
		var found performatives.SessionID
		if found, err = g.find(ctx, name); err == nil && found != id {
			v, err := c.view(ctx, id)
			if err == nil {
				err = g.close(ctx, c, v, nameTaken.why)
			}
			return cmp.Or(err, error(nameTaken))
		}
	}
	if err != nil {
		return err
	}
	return g.o.Records.Sync()
}

// sameVersions refuses a commitment that was made for other versions than the session has.
func (g *Gateway) sameVersions(ctx context.Context, c caller, id performatives.SessionID, e *pb.Envelope) error {
	p, err := read(e.GetPayload(), &pb.CommitmentPayload{})
	if err != nil {
		return err
	}
	t, err := g.history(ctx, c, id, e.GetSessionId())
	switch {
	case err != nil:
		return hidden(err)
	case p.GetModeVersion() != t.start.GetModeVersion():
		return invalid("the session's mode_version is %q", t.start.GetModeVersion())
	case p.GetConfigurationVersion() != t.start.GetConfigurationVersion():
		return invalid("the session's configuration_version is %q", t.start.GetConfigurationVersion())
	}
	return nil
}
