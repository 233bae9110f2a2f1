package demo

import (
	"context"
	"slices"
	"time"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
)

// A scene is one conversation: its participants, the rules by which each decides,
// and the expected result.
type scene struct {
	name  string // in file names and --json
	title string
	shows string // one sentence

	opening client.Invitation // sent by the first role
	cast    []role

	steps   string // the expected acts in order, separated by arrows
	agreed  string // the expected accepted offer
	outcome string // and the expected outcome of the session
	drawn   string // a term whose values are drawn at the end

	script func(ctx context.Context, t *talk) error // of a scene over a gateway, instead of the rules
}

// A role is one principal of a scene. It has its own key, connection and inbox, and
// shares no state with the others.
type role struct {
	agent performatives.Agent
	name  string // on its card
	kind  string // system, personal, or human for a human://
	rules rules

	limits []performatives.Limit // of a human who may decide
	signs  bool                  // with a key of its own, over HTTP too
}

// rules answer one message of an agent's inbox. The first message is the
// invitation, DELEGATE or ESCALATE by which the agent joined.
type rules func(ctx context.Context, a *actor, m *client.Message) error

// An actor is a connected agent.
type actor struct {
	*client.Client
	name  string
	token string       // over HTTP
	say   func(string) // prints a remark between entries
}

// mode returns the mode of the scene's session.
func (s *scene) mode() string {
	if s.opening.Mode == "" {
		return "asp/1"
	}
	return s.opening.Mode
}

// The choices of --mode.
const (
	ASP        = "asp"
	Bilateral  = "bilateral"
	Convergent = "convergent"
	Binding    = "binding"
	Haggle     = "haggle"
	Tender     = "tender"
	All        = "all"
)

// The faces that agents speak to.
const (
	NATS = "nats"
	HTTP = "http"
	MCP  = "mcp"
	A2A  = "a2a"
	MACP = "macp"
)

// Faces lists what Options.Face may be.
func Faces() []string { return []string{NATS, HTTP, MCP, A2A, MACP} }

// Choices lists what Options.Mode may be over a face, the default first.
func Choices(face string) []string {
	switch face {
	case HTTP:
		return []string{ASP, Bilateral, Convergent, Binding, All} // negotiators haggle over NATS
	case MCP, A2A:
		return []string{ASP}
	case MACP:
		return []string{Convergent}
	default:
		return []string{ASP, Bilateral, Convergent, Binding, Haggle, Tender, All}
	}
}

// scenes returns new scenes, because their agents keep state.
func scenes(face, choice string) []scene {
	switch face {
	case MCP:
		return []scene{overMCP()}
	case A2A:
		return []scene{overA2A()}
	case MACP:
		return []scene{overMACP()}
	}
	patterns := []scene{simpleAccept(), counterLoop(), rejectionWithRetry(), clarificationRound(), delegationMidSession(), escalationToHuman()}
	switch choice {
	case ASP:
		return patterns
	case Bilateral:
		return []scene{bilateralMatch()}
	case Convergent:
		return []scene{convergentRounds()}
	case Binding:
		return []scene{signedAgreement()}
	case Haggle:
		return []scene{haggle()}
	case Tender:
		return tenders()
	case All:
		return slices.Concat(patterns, []scene{bilateralMatch(), convergentRounds(), signedAgreement()})
	default:
		return nil
	}
}

// sessionTime is the maximum duration of a session, as in the source's example.
const sessionTime = 30 * time.Minute

// sent drops the receipt of an act.
func sent(_ client.Receipt, err error) error { return err }

// isInvitation tells an invitation from the other offers.
func isInvitation(m *client.Message) bool {
	body, ok := m.Body().(*performatives.ProposeBody)
	return ok && body.Type == performatives.SessionInvitation
}
