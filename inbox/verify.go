package inbox

import (
	"context"
	"net/http"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/transcript"
)

// The bounds of a verification. One runs at a time.
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
	select {
	case i.verifying <- struct{}{}:
		defer func() { <-i.verifying }()
	case <-ctx.Done():
		i.answer(w, r, nil, session.Refuse(session.Unavailable, "another transcript is being verified; try again"))
		return
	}
	found, err := i.verdict(ctx, who, performatives.SessionID(r.PathValue("id")))
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
	v := transcript.NewVerifier(i.Key, transcript.Expect{Session: id, Head: found.Head, Length: int(found.Entries), AllowUnsigned: i.Dev})
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
