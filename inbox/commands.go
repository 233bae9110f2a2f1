package inbox

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
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
		i.tooLarge(w, r)
		return
	}
	reply, err := i.Service.CallAs(r.Context(), who.Agent, verb, request)
	i.answer(w, r, jsontext.Value(reply), err)
}

func (i *Inbox) tooLarge(w http.ResponseWriter, r *http.Request) {
	i.refuse(w, r, session.Refuse(session.TooLarge, "the request is too large"), http.StatusRequestEntityTooLarge)
}

// submit submits the envelope of a decision that the browser built and signed. The
// broker validates it like one received over NATS.
func (i *Inbox) submit(w http.ResponseWriter, r *http.Request, who *person) {
	var q struct {
		Session  performatives.SessionID `json:"sessionId"`
		Envelope jsontext.Value          `json:"envelope"`
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		i.tooLarge(w, r)
		return
	}
	if json.Unmarshal(data, &q) != nil {
		i.refuse(w, r, session.Refuse(session.MalformedEnvelope, "want {sessionId, envelope}"), http.StatusBadRequest)
		return
	}
	if _, err := performatives.ParseSessionID(string(q.Session)); err != nil {
		i.answer(w, r, nil, session.NoSuchSession())
		return
	}
	accepted, err := i.Service.SubmitAs(r.Context(), who.Agent, q.Session, q.Envelope)
	i.answer(w, r, accepted, err)
}

// The bounds of a verification. One runs at a time; humans take turns, and are charged for it.
const (
	verifyEntries = 10_000
	verifyFor     = 30 * time.Second
	shownFaults   = 10
)

// A verdict is what a verification found.
type verdict struct {
	Entries uint64             `json:"entries"`
	Head    performatives.Hash `json:"head"`
	Faults  []string           `json:"faults"` // the first of them
	Count   int                `json:"count"`  // of all faults
}

// verify verifies the transcript of a session that the reader may read.
func (i *Inbox) verify(w http.ResponseWriter, r *http.Request, who *person) {
	ctx, cancel := context.WithTimeout(r.Context(), verifyFor)
	defer cancel()
	leave, came := i.verifying.Take(ctx, who.Agent)
	if !came {
		i.answer(w, r, nil, session.Refuse(session.Unavailable, "other transcripts are being verified; try again"))
		return
	}
	found, err := func() (verdict, error) {
		defer leave()
		return i.verdict(ctx, who, performatives.SessionID(r.PathValue("id")))
	}()
	i.answer(w, r, found, err)
}

func (i *Inbox) verdict(ctx context.Context, who *person, id performatives.SessionID) (found verdict, err error) {
	view, err := ask(ctx, i, who.Agent, api.SessionGet, api.GetSession{Session: id})
	if err != nil {
		return found, err
	}
	found = verdict{Entries: view.Head.Next.Sequence, Head: view.Head.Hash, Faults: []string{}}
	if found.Entries > verifyEntries {
		return found, session.Refuse(session.TooLarge, "the session has more than %d entries: use parley session verify %s", verifyEntries, id)
	}
	keys, err := i.Keys.Trust(i.Key)
	if err != nil {
		return found, err
	}
	v := transcript.NewVerifier(i.Key, transcript.Expect{Session: id, BrokerKeys: keys, Head: found.Head, Length: int(found.Entries), AllowUnsigned: i.Dev})
	note := func(faults []transcript.Fault) {
		for _, f := range faults {
			if found.Count++; len(found.Faults) < shownFaults {
				found.Faults = append(found.Faults, oneLine(f.Error()))
			}
		}
	}
	for at := uint64(0); at < found.Entries; {
		page, err := ask(ctx, i, who.Agent, api.SessionMessages, api.ListMessages{Session: id, Since: at, Limit: api.MaxPage})
		if err != nil {
			return found, err
		}
		for _, entry := range page.Messages[:min(uint64(len(page.Messages)), found.Entries-at)] {
			note(v.Add(entry))
			at++
		}
		if page.Next == nil {
			break
		}
	}
	note(v.End())
	return found, nil
}
