package session

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

var _ = does(performatives.Propose, deed{refers: proposes, happens: proposed, agrees: offersBound})

func proposes(t *Command) error {
	body := t.Message.Body.(*performatives.ProposeBody) //nolint:errcheck,forcetypeassert // its act says so
	o := &Offer{
		ID: body.ProposalID, Kind: aProposal, Side: t.Side, By: t.From.Agent, Line: body.ProposalID,
		Type: body.Type, Subject: body.Subject, Schema: body.Schema,
		Terms: body.Terms, Body: t.Message.RawBody, Expires: t.until(body.ValidUntil),
	}
	switch {
	case t.executing:
		return t.amends(o, body.ReferenceID)
	case t.Phase != Idle:
		return t.offer(o)
	}
	o.Kind = anInvitation
	t.offering = o
	if err := t.alive(o.Expires); err != nil && !t.event.Replayed {
		return err
	}
	if err := t.fitsSchema(); err != nil {
		return err
	}
	return t.inviteesKnown()
}

func proposed(t *Command) {
	if t.Phase == Idle {
		t.invitation = t.offering
		t.openSession()
	} else if retires := t.mode().Retires; retires != nil && retires(&t.State) && !t.Before(3) {
		t.retire()
	}
	t.put(t.offering)
}

// retire supersedes the proposals that are open in the thread of a new one. Expired ones are before
// them, and are not looked at.
func (t *Command) retire() {
	key := t.threadKey(t.offering)
	it := t.threads.Iterator()
	for it.Seek(key + expiryTime(t.Now.Add(1))); ; {
		k, id, ok := it.Next()
		if !ok || !strings.HasPrefix(k, key) {
			return
		}
		t.SetStatus(id, Superseded)
	}
}

// threadKey is the type and subject of a proposal and, of several principals, between whom it is. One
// for everybody stands beside those of others, such as the answers to a call.
func (s *State) threadKey(o *Offer) string {
	key := strconv.Quote(o.Type) + strconv.Quote(o.Subject)
	if s.principals == 2 {
		return key
	}
	sides := []string{string(o.Side), string(o.To)}
	slices.Sort(sides)
	return key + strings.Join(sides, " ") + " "
}

// offersBound limits a PROPOSE by its own terms. Before format 3 one that named nothing
// of the bound was about something else.
func offersBound(t *Command, b *escalation.Bound) (escalation.Pledge, bool) {
	body := t.Message.Body.(*performatives.ProposeBody) //nolint:errcheck,forcetypeassert // its act says so
	o := &Offer{Type: body.Type, Subject: body.Subject, Schema: body.Schema, Body: t.Message.RawBody, Line: body.ProposalID, Side: t.Side, To: t.Message.Recipient}
	p := escalation.Pledge{
		Bodies: []jsontext.Value{t.Message.RawBody}, Terms: performatives.HashOf(body.Terms), Threads: []escalation.Thread{t.threadOf(o)}, Frame: t.frameOf(o, t.Side),
	}
	if t.executing {
		p.Commitment, p.CommitmentTerms = t.Message.RawBody, commitmentTerms(&Offer{Kind: anAmendment, Body: t.Message.RawBody})
	}
	return p, !t.Before(3) || b.Names(t.Message.RawBody)
}

// until puts a wall-clock time on the session's clock; nil is never.
func (t *Command) until(wall *time.Time) time.Time {
	if wall == nil {
		return time.Time{}
	}
	return t.clock(*wall)
}
