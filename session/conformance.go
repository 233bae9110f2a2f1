package session

import "github.com/parley-asp/parley/performatives"

// An agent of conformance level Minimal exchanges information: it knows INFORM, QUERY and
// CLOSE, and answers an invitation. The level is pinned when it joins. It is sent nothing
// else, and may send nothing else. It may open sessions, in asp/1 only, as it may join no
// other mode.

var minimalActs = map[performatives.Performative]bool{
	performatives.Inform: true, performatives.Query: true, performatives.Close: true,
}

// asks are the acts that everybody may answer if they name no recipient.
var asks = map[performatives.Performative]bool{
	performatives.Propose: true, performatives.Counter: true, performatives.Commit: true, performatives.Clarify: true,
}

// minimal reports whether a party, as it is pinned, is of that level.
func (p Party) minimal() bool { return p.Conformance == performatives.Minimal }

// conforms refuses what a Minimal agent may not send, and what it cannot take.
func (t *Command) conforms() error {
	if t.Before(2) || t.simple() {
		return nil
	}
	if t.From.minimal() {
		return t.notMinimal(t.From.Agent, "your conformance level is Minimal: you may send INFORM, QUERY and CLOSE, and answer invitations, not "+t.Act.String())
	}
	for _, a := range t.limited {
		if t.Message.Recipient == a || asks[t.Act] && t.Message.Recipient == "" {
			return t.notMinimal(a, string(a)+" has conformance level Minimal: it takes INFORM, QUERY and CLOSE, not "+t.Act.String()+
				"; address others in recipient")
		}
	}
	body, delegates := t.Message.Body.(*performatives.DelegateBody)
	if !delegates {
		return nil
	}
	if m, known := t.event.Known.Get(body.TargetAgent); known && m.Conformance == performatives.Minimal {
		return t.notMinimal(m.Agent, string(m.Agent)+" has conformance level Minimal, and takes no delegation")
	}
	return nil
}

// opensTo refuses a mode in which a Minimal agent could not take its turn.
func (t *Command) opensTo(invitees []performatives.Agent) error {
	if t.Before(2) || t.opening.Mode == DefaultMode {
		return nil
	}
	if t.From.minimal() {
		return t.notMinimal(t.From.Agent, "your conformance level is Minimal: you negotiate in no mode, so open sessions in "+DefaultMode)
	}
	for _, a := range invitees {
		if m, _ := t.event.Known.Get(a); m.Conformance == performatives.Minimal {
			return t.notMinimal(a, string(a)+" has conformance level Minimal: it can take part in "+DefaultMode+" only")
		}
	}
	return nil
}

func (t *Command) notMinimal(a performatives.Agent, why string) error {
	return Refuse(ModeViolation, "%s", why).
		With(map[string]any{"rule": "conformance", "agentId": a, "conformanceLevel": performatives.Minimal, "allows": []string{"INFORM", "QUERY", "CLOSE"}})
}

// simple reports whether the act is one for everybody: it informs, asks, closes, or is about
// the invitation.
func (t *Command) simple() bool {
	return minimalActs[t.Act] || isInvitation(t.Message.Body) || t.Was == Invited && t.Act != performatives.Counter
}
