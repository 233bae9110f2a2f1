package inbox

import (
	"io"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// callable are the verbs that pages may call. Decisions are envelopes, which go to
// submit.
var callable = map[string]bool{
	api.HumanAway.Name:       true,
	api.EscalationClaim.Name: true, api.EscalationRelease.Name: true, api.EscalationAssign.Name: true,
	api.EscalationComment.Name: true, api.EscalationTransfer.Name: true,
}

func (i *Inbox) call(w http.ResponseWriter, r *http.Request, who *person) {
	verb := r.PathValue("verb")
	if !callable[verb] {
		http.NotFound(w, r)
		return
	}
	request, err := io.ReadAll(r.Body)
	if err != nil {
		i.refuse(w, r, session.Refuse(session.TooLarge, "the request is too large"), http.StatusRequestEntityTooLarge)
		return
	}
	reply, err := i.Broker.CallAs(r.Context(), who.Agent, verb, request)
	i.answer(w, r, jsontext.Value(reply), err)
}

// submit submits the envelope of a decision that the browser built and signed. The
// broker validates it like one received over NATS.
func (i *Inbox) submit(w http.ResponseWriter, r *http.Request, who *person) {
	var q struct {
		Session  performatives.SessionID `json:"sessionId"`
		Envelope jsontext.Value          `json:"envelope"`
	}
	data, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(data, &q) != nil {
		i.refuse(w, r, session.Refuse(session.MalformedEnvelope, "want {sessionId, envelope}"), http.StatusBadRequest)
		return
	}
	if _, err := performatives.ParseSessionID(string(q.Session)); err != nil {
		i.answer(w, r, nil, session.NoSuchSession())
		return
	}
	accepted, err := i.Broker.SubmitAs(r.Context(), who.Agent, q.Session, q.Envelope)
	i.answer(w, r, accepted, err)
}
