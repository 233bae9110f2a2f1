package macpgateway_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/parley-asp/parley/gateway/macp/pb"
	"github.com/parley-asp/parley/test/testkit"
)

// An outsider gets the same of a session that there is and of one that there is not, whatever it says.
func TestNonParticipant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{Dev: true})
	native := w.envelope("a", "SessionStart", "", `{"participants":["a","b"],"ttlMs":"60000",`+versions+`}`)
	native.SessionId = uuid.Must(uuid.NewV7()).String()
	w.is(w.sends("a", native), "ok OPEN")
	w.starts("a", "s1", "a", "b")
	ids := []string{sessionID("none"), sessionID("s1"), native.GetSessionId(), uuid.Must(uuid.NewV7()).String()}
	for _, kind := range []string{"Proposal", "CounterProposal", "Accept", "Reject", "Withdraw", "Commitment", "Unknown"} {
		for _, payload := range []string{"", "\xff"} {
			var want string
			for _, id := range ids {
				a := w.sends("spy", &pb.Envelope{
					MacpVersion: "1.0", Mode: modeURI, MessageType: kind, MessageId: "m1", SessionId: id, Payload: []byte(payload),
				})
				a.SessionId, a.Error.SessionId, a.AcceptedAtUnixMs = "", "", 0
				if want == "" {
					want = shown(t, a)
				}
				w.is(a, "FORBIDDEN")
				if got := shown(t, a); got != want {
					t.Errorf("of %s the spy's %s %q gets %s, of another session %s", id, kind, payload, got, want)
				}
			}
		}
	}
	for _, stream := range []func(id string) *pb.StreamSessionRequest{
		func(id string) *pb.StreamSessionRequest { return &pb.StreamSessionRequest{SubscribeSessionId: id} },
		func(id string) *pb.StreamSessionRequest {
			return &pb.StreamSessionRequest{Envelope: &pb.Envelope{MacpVersion: "1.0", Mode: modeURI, MessageType: "Accept", MessageId: "m1", SessionId: id}}
		},
	} {
		var want string
		for _, id := range ids {
			s, err := w.StreamSession(w.as("spy"))
			testkit.Must(t, err)
			testkit.Must(t, s.Send(stream(id)))
			r, err := s.Recv()
			testkit.Must(t, err)
			r.GetError().SessionId = ""
			if want == "" {
				want = shown(t, r)
			}
			if got := shown(t, r); r.GetError() == nil || got != want {
				t.Errorf("of %s the spy's stream gets %s, of another session %s", id, got, want)
			}
		}
	}
}
