package inbox

import (
	"net/http"
	"slices"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A sealer is a principal who has sealed parts of an escalation. They are opened together.
type sealer struct {
	By     performatives.Agent
	Parts  []sealedPart
	Opened bool // the arbiter may read them
}

// A sealedPart is one sealed member, as the sealer's own side reads it.
type sealedPart struct{ Name, Text string }

// sealedNames are the members that can be sealed, in words.
var sealedNames = []struct{ member, name string }{
	{performatives.SealContext, "the context"}, {performatives.SealSuggested, "the suggested action"},
	{performatives.SealAuthority, "what the decision allows"}, {performatives.SealComment, "the comment"},
}

// sealers are those who have sealed parts of an item; none in a session without an arbiter.
func sealers(it *api.EscalationItem) (all []sealer) {
	if it.Arbiter == "" {
		return nil
	}
	add := func(by performatives.Agent, sealed performatives.Digests, texts map[string]string) {
		n := slices.IndexFunc(all, func(s sealer) bool { return s.By == by })
		for _, part := range sealedNames {
			if !sealed.Has(part.member) {
				continue
			}
			if n < 0 {
				n, all = len(all), append(all, sealer{By: by, Opened: slices.Contains(it.Unsealed, by)})
			}
			all[n].Parts = append(all[n].Parts, sealedPart{part.name, oneLine(texts[part.member])})
		}
	}
	add(it.By, it.Sealed, map[string]string{performatives.SealContext: string(it.Context), performatives.SealSuggested: it.SuggestedAction})
	for _, v := range it.Votes {
		add(v.By, v.Sealed, map[string]string{performatives.SealComment: v.Comment})
	}
	return all
}

// mostSealers bounds the principals of one request.
const mostSealers = 100

// unseals is the purpose of the proof that opens sealed parts: a cookie alone cannot do what cannot be undone.
func unseals(id string, of []performatives.Agent) string {
	var names strings.Builder
	for _, a := range of {
		names.WriteString(" " + string(a))
	}
	return "parley inbox: unseal " + id + names.String()
}

// unseal opens to the arbiter what some principals have sealed of an escalation. The key of the browser signs
// which.
func (i *Inbox) unseal(w http.ResponseWriter, r *http.Request, who *person) {
	var q struct {
		proof
		Escalation string                `json:"escalationId"`
		Sealers    []performatives.Agent `json:"sealers"`
	}
	if !i.read(w, r, &q) {
		return
	}
	if len(q.Sealers) == 0 || len(q.Sealers) > mostSealers {
		i.refuse(w, r, session.Refuse(session.SchemaInvalid, "choose what the arbiter is to read"), session.SchemaInvalid.Status())
		return
	}
	if err := i.proves(r, who, q.proof, unseals(q.Escalation, q.Sealers)); err != nil {
		i.fails(w, r, "", err)
		return
	}
	for _, a := range q.Sealers {
		if _, err := ask(r.Context(), i, who.Agent, api.EscalationUnseal, api.UnsealEscalation{Escalation: q.Escalation, Sealer: a}); err != nil {
			i.answer(w, r, nil, err)
			return
		}
	}
	i.answer(w, r, map[string]int{"opened": len(q.Sealers)}, nil)
}
