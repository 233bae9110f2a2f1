package modes

import (
	"bytes"
	"cmp"
	"time"

	asp "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
)

// asSigned holds what a party signed in OAP's form to the act that it came with: the party's
// own key signed it, and it says the same. So a replay verifies it too.
func asSigned(t *session.Command) error {
	documents := agreement.OAPIn(t.Message.Context)
	if len(documents) == 0 || t.Before(2) {
		return nil
	}
	if len(documents) > 1 {
		return session.Violation("document", "an act carries one document of %s", agreement.OAPType)
	}
	d, err := agreement.ReadOAP(documents[0])
	if err != nil {
		return session.Violation("document", "the document in content.context cannot be read: %s", err)
	}
	if key := t.OwnKey(t.Side); key != "" && !d.SignedBy(key) {
		return session.Refuse(session.SignatureInvalid, "the signature of the document in content.context is not of %s, the key of %s", key, t.Side)
	}
	if member := differs(t, d); member != "" {
		return session.Violation("document", "%s of the document in content.context is not what the act says", member)
	}
	return nil
}

// differs names a member of the document that says something else than the act.
func differs(t *session.Command, d agreement.OAPDocument) string {
	id, signature := t.Message.Body.Refers(), d.AgreementSignature
	if body, offers := t.Message.Body.(asp.Offering); offers {
		if member := offersElse(t, d, body.Offer()); member != "" {
			return member
		}
		id, signature = t.Message.Body.ID(t.Message.ID), binds(t).AgreementSignature
	}
	if body, accepts := t.Message.Body.(*asp.AcceptBody); accepts {
		signature = body.AgreementSignature
	}
	switch {
	case d.Negotiation != "" && !agreement.OAPNames(d.Negotiation, agreement.OAPNegotiation, string(t.ID)):
		return "negotiation_id"
	case d.Proposal != "" && t.Act != asp.Close && !agreement.OAPNames(d.Proposal, agreement.OAPProposal, id):
		return "proposal_id"
	case d.AgreementSignature != "" && agreement.Unpadded(d.AgreementSignature) != signature:
		return "agreement_signature"
	}
	return ""
}

func offersElse(t *session.Command, d agreement.OAPDocument, o asp.Offer) string {
	b := binds(t)
	switch {
	case d.Proposal == "":
		return "proposal_id"
	case d.Negotiation == "":
		return "negotiation_id"
	case !agreement.OAPNames(d.Previous, agreement.OAPProposal, t.Message.Body.Refers()):
		return "previous_proposal_id"
	case d.From != agreement.InheritedOf(&t.State).DIDOf(t.Side):
		return "from"
	case d.To != agreement.InheritedOf(&t.State).DIDOf(t.Other(t.Side)):
		return "to"
	case d.Round == nil || b.Round == nil || *d.Round != *b.Round:
		return "round"
	case d.Category != b.Category:
		return "category"
	case !bytes.Equal(d.Terms, o.Terms):
		return "terms"
	case !sameTime(d.ValidUntil, o.ValidUntil):
		return "valid_until"
	case cmp.Or(d.EffectiveFrom, b.EffectiveFrom) != b.EffectiveFrom:
		return "effective_from"
	case cmp.Or(d.EffectiveUntil, b.EffectiveUntil) != b.EffectiveUntil:
		return "effective_until"
	case d.Salt != "" && agreement.Unpadded(d.Salt) != b.AgreementSalt:
		return "agreement_salt"
	}
	return ""
}

func sameTime(text string, at *time.Time) bool {
	given, err := time.Parse(time.RFC3339Nano, text)
	if text == "" || at == nil {
		return text == "" && at == nil
	}
	return err == nil && given.Equal(*at)
}
