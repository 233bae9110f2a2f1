package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// SayAt submits an act as the entry that the sender believes comes next. It
// returns what comes next then, by the answer: after this act, or, where another
// was faster, in its place.
func (s *Session) SayAt(sender performatives.Agent, act, body string, at Place) Place {
	s.witness.Helper()
	p := s.promise(sender, act, body, &at)
	m := s.send(p)
	if m.Header.Get(api.ErrorCodeHeader) == "" {
		p.answer = s.acceptance(m)
		s.history.accepted(p.id, p.answer.Sequence)
		s.keep(p)
		return Place{p.answer.Sequence + 1, p.answer.Hash}
	}
	var refused struct {
		Error struct {
			Code    string
			Details struct{ Head struct{ Next Place } }
		}
	}
	if err := json.Unmarshal(m.Data, &refused); err != nil || refused.Error.Code != "chain_conflict" {
		s.witness.Errorf("session %s: refused: %s", s.ID, m.Data)
		return at
	}
	next := refused.Error.Details.Head.Next
	s.history.refused(p.id, at.Sequence, next.Sequence)
	s.read(next)
	return next
}

// A Place is what the next entry has to say of itself.
type Place struct {
	Sequence uint64             `json:"sequenceNumber"`
	Previous performatives.Hash `json:"previousHash"`
}

// SeenFrom asks once, as one of the parties and from where another witness is,
// how many entries there are. There may be no answer.
func (s *Session) SeenFrom(w *Witness, party performatives.Agent) (entries uint64, answered bool) {
	s.witness.Helper()
	m, err := w.nc.Request(api.Call(party, api.SessionGet.Name), fmt.Appendf(nil, `{"sessionId":%q}`, s.ID), time.Second)
	if err != nil || m.Header.Get(api.ErrorCodeHeader) != "" {
		return 0, false
	}
	var view struct{ Head struct{ Next Place } }
	if err := json.Unmarshal(m.Data, &view); err != nil {
		s.witness.Error(err)
	}
	return view.Head.Next.Sequence, true
}

// Next asks, as one of the parties, what comes next.
func (s *Session) Next(party performatives.Agent) Place {
	s.witness.Helper()
	var view struct{ Head struct{ Next Place } }
	request := fmt.Appendf(nil, `{"sessionId":%q}`, s.ID)
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	if testkit.Until(ctx, func() bool {
		asked := now()
		m, err := s.witness.nc.Request(api.Call(party, api.SessionGet.Name), request, time.Second)
		if err != nil || m.Header.Get(api.ErrorCodeHeader) != "" {
			return false
		}
		if err := json.Unmarshal(m.Data, &view); err != nil {
			s.witness.Error(err)
		}
		s.history.note(ends{view.Head.Next.Sequence}, asked)
		s.read(view.Head.Next)
		return true
	}) != nil {
		s.witness.Errorf("session %s: no view in %s", s.ID, testkit.Patience)
	}
	return view.Head.Next
}

// read keeps what somebody was told of the transcript.
func (s *Session) read(at Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, at)
}

func (s *Session) transcript() (lines [][]byte) {
	s.witness.Helper()
	for {
		var page api.Messages
		s.witness.Call(api.SessionMessages.Name, fmt.Sprintf(`{"sessionId":%q,"since":%d}`, s.ID, len(lines)), &page)
		for _, m := range page.Messages {
			lines = append(lines, m)
		}
		if page.Next == nil {
			return lines
		}
	}
}
