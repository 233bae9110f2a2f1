package demo

import (
	"context"
	"slices"
	"time"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
)

// A scene is one conversation: who takes part, by which rules each decides, and
// what is to come of it.
type scene struct {
	name  string // for files and --json
	title string
	shows string // one sentence

	opening client.Invitation // of the first of the cast
	cast    []role

	steps   string // the acts that are expected, in order, with arrows between them
	agreed  string // the offer that is accepted in the end
	outcome string // and why the session is over
}

// A role is one principal of a scene. It gets a key, a connection and an inbox
// of its own, and nothing else of the others.
type role struct {
	agent performatives.Agent
	name  string // on its card
	kind  string // system, personal, or human for a human://
	rules rules

	limits []performatives.Limit // of a human who may decide
}

// rules are how an agent answers what its inbox brings. The invitation, the
// DELEGATE or the ESCALATE by which it comes in is the first of it.
type rules func(ctx context.Context, a *actor, m *client.Message) error

// An actor is an agent at work.
type actor struct {
	*client.Client
	say func(string) // a remark of the demo's, beside the conversation
}

// mode is the mode that the scene's session is held in.
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
	All        = "all"
)

// Choices lists what Options.Mode may be.
func Choices() []string { return []string{ASP, Bilateral, Convergent, All} }

// scenes are those of one choice, made anew: their agents have a memory.
func scenes(choice string) []scene {
	patterns := []scene{simpleAccept(), counterLoop(), rejectionWithRetry(), clarificationRound(), delegationMidSession(), escalationToHuman()}
	switch choice {
	case ASP, "":
		return patterns
	case Bilateral:
		return []scene{bilateralGate()}
	case Convergent:
		return []scene{convergentRounds()}
	case All:
		return slices.Concat(patterns, []scene{bilateralGate(), convergentRounds()})
	default:
		return nil
	}
}

// sessionTime is how long the sessions may last, as in the patterns' own example.
const sessionTime = 30 * time.Minute

// said is for an act whose receipt says nothing more.
func said(_ client.Receipt, err error) error { return err }

// isInvitation tells an invitation from the other offers.
func isInvitation(m *client.Message) bool {
	body, ok := m.Body().(*performatives.ProposeBody)
	return ok && body.Type == performatives.SessionInvitation
}
