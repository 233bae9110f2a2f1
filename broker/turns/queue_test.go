package turns_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	hero     = performatives.Agent("agent://acme.com/hero")
	eager    = performatives.Agent("agent://eager.org/a")
	innocent = performatives.Agent("agent://innocent.org/a")
)

// A crowd speaks to a broker without a login.
type crowd struct {
	testing.TB
	*server.Broker
}

func (c crowd) says(id performatives.SessionID, a performatives.Agent, act, body string) {
	c.Helper()
	envelope := fmt.Sprintf(`{"version":"asp/0.1","messageId":%q,"sessionId":%q,"timestamp":%q,"sender":{"agentId":%q},"performative":%q,"content":{"body":%s}}`,
		uuid.Must(uuid.NewV7()), id, c.Options.Now().UTC().Format(time.RFC3339Nano), a, act, body)
	if _, err := c.Gateway.SubmitAs(c.Context(), a, id, []byte(envelope)); err != nil {
		c.Fatalf("%s of %s: %v", act, a, err)
	}
}

// invites opens sessions with the hero.
func (c crowd) invites(a performatives.Agent, n int) (ids []performatives.SessionID) {
	c.Helper()
	for range n {
		id := testkit.NewSession()
		c.says(id, a, "PROPOSE", fmt.Sprintf(`{"proposalId":"i","type":"session-invitation","subject":"s","terms":{"participants":[%q]}}`, hero))
		ids = append(ids, id)
	}
	return ids
}

// pickUp is the session of the turn that a worker of the hero's gets, "" for none.
func (c crowd) pickUp(worker string) performatives.SessionID {
	c.Helper()
	turn, err := c.Turns.Pickup(c.Context(), api.Caller{Agent: hero}, api.PickUpTurn{Worker: worker})
	testkit.Must(c, err)
	return turn.Session
}

func (c crowd) serves(what string, want ...performatives.SessionID) {
	c.Helper()
	var got []performatives.SessionID
	for n := range want {
		got = append(got, c.pickUp(fmt.Sprintf("%s %d", what, n)))
	}
	if !slices.Equal(got, want) {
		c.Errorf("%s: the turns come as %v, want %v", what, got, want)
	}
}

// Organisations that wait for an agent are served in turn, the oldest turn of each first. So
// what one has asked buries nobody else's, also after a restart; nor does what was answered.
func TestOrganisationsTakeTurns(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Minute})
	c := crowd{t, b.Broker}
	buried := c.invites(eager, 20)
	few := c.invites(innocent, 2)
	c.serves("in turn", buried[0], few[0], buried[1], few[1], buried[2], buried[3])
	late := c.invites("agent://late.org/a", 1)
	if got := []performatives.SessionID{c.pickUp("a"), c.pickUp("b")}; !slices.Contains(got, late[0]) {
		t.Errorf("who came late waits behind %v", got)
	}
	b.Down()
	b.Up()
	c.Broker = b.Broker
	again := c.invites(innocent, 1)
	if got := []performatives.SessionID{c.pickUp("c"), c.pickUp("d")}; !slices.Contains(got, again[0]) {
		t.Errorf("after a restart the newest waits behind %v", got)
	}
}

// A session that has had no turn for an agent is found once it has one, whosever act it was.
func TestTurnsComeBack(t *testing.T) {
	t.Parallel()
	c := crowd{t, testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Minute}).Broker}
	id := c.invites(eager, 1)[0]
	c.says(id, hero, "ACCEPT", `{"referenceId":"i"}`)
	c.serves("the other side's turn", "")
	c.says(id, eager, "PROPOSE", `{"proposalId":"p","type":"service","subject":"s","terms":{"price":5}}`)
	c.serves("an offer", id)
	clarify := uuid.Must(uuid.NewV7()).String()
	envelope := fmt.Sprintf(`{"version":"asp/0.1","messageId":%q,"sessionId":%q,"timestamp":%q,"sender":{"agentId":%q},"performative":"CLARIFY","content":{"body":{"referenceId":"p","questions":[{"field":"terms.price","question":"?"}]}}}`,
		clarify, id, time.Now().UTC().Format(time.RFC3339Nano), hero)
	_, err := c.Gateway.SubmitAs(t.Context(), hero, id, []byte(envelope))
	testkit.Must(t, err)
	c.serves("asked", "")
	c.says(id, hero, "WITHDRAW", fmt.Sprintf(`{"referenceId":%q}`, clarify))
	c.serves("asked no more", id)
	c.says(id, eager, "CLOSE", `{}`)
	c.serves("over", "")
}

// Of two brokers each finds the turns of sessions that went on at the other.
func TestTurnsOfTwoBrokers(t *testing.T) {
	t.Parallel()
	at := testkit.StartServer(t)
	first, _ := at.OpenBroker()
	second, _ := at.OpenBroker()
	one, two := crowd{t, first}, crowd{t, second}
	two.serves("before", "")
	for n, said := range []crowd{one, two, one} {
		id := said.invites(eager, 1)[0]
		testkit.Eventually(t, "the session is listed", func() bool {
			row, ok := second.Parts.List.Row(id)
			return ok && row.State == session.Invited
		})
		two.serves(fmt.Sprint("invited ", n), id)
		said.says(id, hero, "ACCEPT", `{"referenceId":"i"}`)
		two.serves(fmt.Sprint("accepted ", n), "")
		said.says(id, eager, "PROPOSE", `{"proposalId":"p","type":"service","subject":"s","terms":{"price":5}}`)
		two.serves(fmt.Sprint("offered ", n), id)
		said.says(id, hero, "ACCEPT", `{"referenceId":"p"}`)
	}
}

// BenchmarkPickup is one pickup, while so many invitations of one organisation wait and one of
// another organisation; first is the first one after a start.
func BenchmarkPickup(b *testing.B) {
	for _, waiting := range []int{10, 300, 3000} {
		b.Run(fmt.Sprint(waiting), func(b *testing.B) {
			br := testkit.StartBroker(b, testkit.Options{
				Dev: true, Sync: time.Minute, Limits: limits.Limits{Rate: -1, Invitations: -1, PrincipalBytes: -1, OrganisationBytes: -1},
			})
			c := crowd{b, br.Broker}
			c.invites(eager, waiting)
			c.invites(innocent, 1)
			br.Down()
			br.Up()
			c.Broker = br.Broker
			began := time.Now()
			c.pickUp("first")
			first := time.Since(began)
			for b.Loop() {
				turn, err := c.Turns.Pickup(b.Context(), api.Caller{Agent: hero}, api.PickUpTurn{Worker: "w"})
				if err != nil || turn.Claim == nil {
					b.Fatal(turn, err)
				}
				b.StopTimer()
				_, err = c.Turns.Release(b.Context(), api.Caller{Agent: hero}, api.ReleaseTurn{ID: turn.Claim.ID, Worker: "w"})
				testkit.Must(b, err)
				b.StartTimer()
			}
			b.ReportMetric(float64(first.Microseconds())/1000, "ms/first")
		})
	}
}
