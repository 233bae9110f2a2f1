package hosted

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
)

// acceptsLater is the context of an ACCEPT that signs later.
func acceptsLater(p agreement.Party, said api.Say) ([]jsontext.Value, error) {
	var names struct {
		Reference string `json:"referenceId"`
	}
	if err := json.Unmarshal(said.Body, &names); err != nil {
		return said.Context, nil //nolint:nilerr // the protocol refuses it
	}
	context, err := p.Accepts(names.Reference)
	return append(context, said.Context...), err
}

// signLater signs the agreement that an ACCEPT has made. If that fails, the acceptance proves it, and an ACCEPT that is
// said again tries again.
func (h *Agents) signLater(ctx context.Context, p agreement.Party, said api.Say, accepted api.Acceptance) {
	if err := h.signsLater(ctx, p, said, accepted); err != nil && !errors.Is(err, &session.Refusal{Code: session.ModeViolation}) { // which it is if it is signed
		h.o.Log.Warn("an accepted agreement is not signed yet", zap.String("sessionId", string(accepted.Session)), zap.String("agent", string(p.Self)), zap.Error(err))
	}
}

func (h *Agents) signsLater(ctx context.Context, p agreement.Party, said api.Say, accepted api.Acceptance) error {
	signature, err := p.SignAccepted(said.Body, accepted.AcceptedAt)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"type": performatives.Fact, "data": map[string]string{"agreementSignature": signature}}, json.Deterministic(true))
	if err != nil {
		return err
	}
	signs := Act{Session: accepted.Session, Message: performatives.MessageID(newID()), At: h.o.Now().UTC().Truncate(time.Millisecond)}
	s := speech{Agents: h, as: p.Self, signer: p.Signer, said: api.Say{Session: accepted.Session, Performative: performatives.Inform.String(), Body: body}}
	_, err = s.say(ctx, signs)
	return err
}

// party makes what the mode wants of an act that agrees to something. An act without a link, such as the invitation, is
// none that the mode has signed.
func (h *Agents) party(ctx context.Context, as performatives.Agent, signer performatives.Signer, made Act, said api.Say, state *session.State) (p agreement.Party, signs bool, err error) {
	act := performatives.Parse(said.Performative)
	if made.Link == nil || state.Mode == nil || !state.Mode.Signed || agreement.CarriesOAP(said.Context) || act != performatives.Propose && act != performatives.Counter && act != performatives.Accept {
		return p, false, nil
	}
	p = agreement.Party{Signer: signer, Session: made.Session, Message: made.Message, At: made.At, Self: as, Inherited: agreement.InheritedOf(state)}
	for _, other := range state.Participants()[:state.Principals()] {
		if other != as {
			p.Other = other
		}
	}
	var names struct {
		Reference string `json:"referenceId"`
	}
	if act == performatives.Accept && json.Unmarshal(said.Body, &names) == nil {
		if offer, known := state.Offer(names.Reference); known {
			page, err := h.o.Messages(ctx, as, api.ListMessages{Session: made.Session, Since: offer.Sequence, Limit: 1})
			if err != nil {
				return p, false, err
			}
			if p.Offer, err = agreement.OfferIn(page.Messages); err != nil {
				return p, false, err
			}
		}
	}
	return p, true, nil
}
