package macpgateway_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway/macp/pb"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// A session is shown as it was started although the token that named a participant is gone, and each message of it
// has an id of its own.
func TestShownAsStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	w.hosts(api.Card{Agent: buyer, MACP: true}, "the buyer", api.AddToken{Sender: "the buyer"})
	_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: seller, MACP: true})
	testkit.Must(t, err)
	token, err := w.OperatorClient().AddToken(w.Ctx, api.AddToken{Agent: seller, Sender: "the seller"})
	testkit.Must(t, err)
	w.bearers["the seller"] = token.Token
	w.starts("the buyer", "s1", "the buyer", "the seller")
	w.must("the seller", "Proposal", "s1", `{"proposalId":"p1","title":"A"}`)
	taken := w.envelope("the buyer", "CounterProposal", "s1", `{"proposalId":"p2","supersedesProposalId":"p1","title":"B"}`)
	taken.MessageId = "message-2"
	w.is(w.sends("the buyer", taken), "ok OPEN")
	w.must("the seller", "Accept", "s1", `{"proposalId":"p2"}`)
	before := w.reads("the buyer", sessionID("s1"), 0, 4)
	ids := map[string]bool{}
	for _, e := range before {
		ids[e.GetMessageId()] = true
	}
	if len(ids) != len(before) {
		t.Errorf("of %d messages the ids are %v", len(before), ids)
	}
	_, err = w.OperatorClient().RemoveToken(w.Ctx, token.ID)
	testkit.Must(t, err)
	if after := w.reads("the buyer", sessionID("s1"), 0, 4); !slices.EqualFunc(before, after, func(a, b *pb.Envelope) bool { return proto.Equal(a, b) }) {
		t.Errorf("once the seller's token is gone, the messages are\n%v\nand were\n%v", after, before)
	}
	w.must("the buyer", "Accept", "s1", `{"proposalId":"p2"}`)
	w.must("the buyer", "Commitment", "s1", `{"commitmentId":"c1","action":"a","authorityScope":"s","reason":"r","outcomePositive":true,`+versions+`}`)
}

// A message of somebody else's is refused in the stream, which goes on.
func TestStreamOfAnothersMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{Dev: true})
	w.starts("a", "s1", "a", "b")
	s, err := w.StreamSession(w.as("a"))
	testkit.Must(t, err)
	for _, sender := range []string{"b", "a"} {
		testkit.Must(t, s.Send(&pb.StreamSessionRequest{Envelope: w.envelope(sender, "Proposal", "s1", `{"proposalId":"p1","title":"A"}`)}))
	}
	refused, err := s.Recv()
	testkit.Must(t, err)
	said, err := s.Recv()
	testkit.Must(t, err)
	if refused.GetError().GetCode() != "UNAUTHENTICATED" || said.GetEnvelope().GetSender() != "a" {
		t.Errorf("the stream says %v, then %v", refused, said)
	}
}

// Details that clients read as JSON in different ways are refused: a limit would not hold for them.
func TestLegible(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{Dev: true})
	w.starts("a", "s1", "a", "b")
	for i, details := range []string{
		`{"price":1,"price":2}`, "\ufeff{\"price\":1}", "\xff\xfe{\x00}\x00", "{\x00}\x00", ` [1.00000000000000000000001]`, "\ufeff [1]",
		`{"price":1,"x":NaN}`, "{\x00\"\x00x\x00\"\x00:\x00\"\x00\x22\x01\"\x00}\x00", `{"price":1} and more`,
		`{"price":1}`, `{price: 1}`, `[draft] two cups`, `[1] cups; [2] plates`, "\n[\x08\x01two cups", `two {or} more`, "\xff\xfe", ``,
	} {
		e := w.envelope("a", "Proposal", "s1", fmt.Sprintf(`{"proposalId":"p%d","title":"A","details":%q}`, i, base64Of([]byte(details))))
		if a := w.sends("a", e); a.GetOk() != (i > 8) {
			t.Errorf("details %q are answered %s %s", details, answered(a), a.GetError().GetMessage())
		}
	}
}

// A name stays its principal's, whichever of its tokens goes. Nobody is meant by it while none is good.
func TestNameOfTwoTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{})
	w.hosts(api.Card{Agent: buyer, MACP: true}, "the buyer", api.AddToken{Sender: "the buyer"})
	w.hosts(api.Card{Agent: seller, MACP: true}, "the seller", api.AddToken{})
	var ids []string
	for range 2 {
		token, err := w.OperatorClient().AddToken(w.Ctx, api.AddToken{Agent: seller, Sender: "the seller"})
		testkit.Must(t, err)
		w.bearers["the seller"], ids = token.Token, append(ids, token.ID)
	}
	mole := api.Card{Agent: "agent://other.io/mole", MACPSender: "the seller"}
	_, err := w.OperatorClient().RemoveToken(w.Ctx, ids[0])
	testkit.Must(t, err)
	if _, err := w.OperatorClient().AddHosted(w.Ctx, mole); !errors.Is(err, &session.Refusal{Code: session.Duplicate}) {
		t.Errorf("a card takes the name of a token that is good: %v", err)
	}
	w.starts("the buyer", "s1", "the buyer", "the seller")
	_, err = w.OperatorClient().RemoveToken(w.Ctx, ids[1])
	testkit.Must(t, err)
	if _, err := w.OperatorClient().AddHosted(w.Ctx, mole); !errors.Is(err, &session.Refusal{Code: session.Duplicate}) {
		t.Errorf("a card takes the name that another had a token with: %v", err)
	}
	w.is(w.says("the buyer", "SessionStart", "s2", `{"participants":["the buyer","the seller"],"ttlMs":"1000",`+versions+`}`), "INVALID_ENVELOPE")
	if _, err := w.OperatorClient().AddToken(w.Ctx, api.AddToken{Agent: seller, Sender: "the seller"}); err != nil {
		t.Errorf("a principal does not get its name again: %v", err)
	}
}
