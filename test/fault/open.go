package fault

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// Open opens a session of these principals, the first of whom invites.
func (w *Witness) Open(parties ...performatives.Agent) *Session { return w.open("", parties) }

// Arbitrated opens a session with an arbiter.
func (w *Witness) Arbitrated(arbiter performatives.Agent, parties ...performatives.Agent) *Session {
	return w.open(fmt.Sprintf(`,"policy":{"arbiter":%q}`, arbiter), parties)
}

func (w *Witness) open(more string, parties []performatives.Agent) *Session {
	w.Helper()
	s := &Session{ID: performatives.SessionID(uuid.Must(uuid.NewV7()).String()), witness: w}
	invited, err := json.Marshal(parties[1:])
	if err != nil {
		w.Fatal(err)
	}
	s.Say(parties[0], "PROPOSE", `{"proposalId":"inv","type":"session-invitation","subject":"x","terms":{"participants":`+string(invited)+more+`}}`)
	for _, p := range parties[1:] {
		s.Say(p, "ACCEPT", `{"referenceId":"inv"}`)
	}
	return s
}

// Invite opens a session that must be answered in time.
func (w *Witness) Invite(inviter, invitee performatives.Agent, within time.Duration) *Session {
	w.Helper()
	s := &Session{ID: performatives.SessionID(uuid.Must(uuid.NewV7()).String()), witness: w}
	s.Say(inviter, "PROPOSE", fmt.Sprintf(
		`{"proposalId":"inv","type":"session-invitation","subject":"x","terms":{"participants":[%q],"invitationTimeoutMs":%d}}`, invitee, within.Milliseconds()))
	s.Deadline = time.Now().Add(within)
	return s
}

// Closed waits until a party learns from the broker that a deadline has ended
// the session.
func (s *Session) Closed(party performatives.Agent, reason string) {
	s.witness.Helper()
	for end := time.Now().Add(testkit.Patience); time.Now().Before(end); {
		var last transcript.Entry
		others := 0
		for _, line := range s.transcript() {
			var err error
			if last, err = transcript.Read(line); err != nil {
				s.witness.Fatal(err)
			}
			if last.Message.Sender != party {
				others++
			}
		}
		if body := new(performatives.CloseBody); last.Message.Sender.IsBroker() {
			if err := json.Unmarshal(last.Message.RawBody, body); err != nil || body.Reason != reason {
				s.witness.Errorf("closed for %q, want %q: %v", body.Reason, reason, err)
			}
			return
		}
		s.collect(party, others+1)
	}
	s.witness.Fatalf("session %s was never closed", s.ID)
}
