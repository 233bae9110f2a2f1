package session_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// show prints a compact view of a part of the session, a line for each thing.
func (c *conversation) show(what []string) ([]string, error) {
	v := api.ViewSession(&c.state, c.now)
	var lines []string
	say := func(format string, args ...any) {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
	switch what[0] {
	case "state":
		say("%s %s", v.State, v.Closing)
	case "turns":
		taken, newest := c.state.Turns()
		say("%d, the newest is entry %d", taken, newest)
	case "mode":
		say("%s, %q", v.Mode, v.Purpose)
	case "status":
		var status string
		if err := json.Unmarshal(partOf(v, "status"), &status); err != nil {
			return nil, err
		}
		say("%s", status)
	case "turn", "outcome", "projection", "round", "confirmations", "agreementId", "agreementHash":
		say("%s", cmp.Or(string(partOf(v, what[0])), "absent"))
	case "invitation":
		say("%s of %s: %s %s", v.Invitation.Proposal, v.Invitation.From, v.Invitation.Status, v.Invitation.Terms)
	case "participants":
		for _, p := range v.Participants {
			line := fmt.Sprintf("%s: %s, %s, %s", p.Agent, p.Role, p.Status, p.Authority)
			if p.OnBehalfOf != "" {
				line += ", for " + string(p.OnBehalfOf)
			}
			say("%s", line)
		}
	case "proposals", "commitments":
		list := v.Proposals
		if what[0] == "commitments" {
			list = v.Commitments
		}
		for _, o := range list {
			say("%s", offerLine(o))
		}
	case "agreements":
		for _, a := range c.state.Agreements() {
			line := fmt.Sprintf("%s of %v, entries %d", a.Name, a.Parties, a.Offer)
			for _, sequence := range []uint64{a.Commit, a.Acceptance, a.Close, a.Confirmed} {
				if sequence > 0 {
					line += fmt.Sprintf(", %d", sequence)
				}
			}
			if !a.Consented {
				line += ", not to be published"
			}
			say("%s", line)
		}
	case "pauses":
		for _, p := range v.Pauses {
			say("%s to %s", p.From, cmp.Or(p.Until, "now"))
		}
	case "delegations":
		for _, d := range v.Delegations {
			line := fmt.Sprintf("%s: %s to %s, for %s, %s, depth %d, %s", d.ID, d.From, d.To, d.OnBehalfOf, d.Authority, d.Depth, d.Status)
			if d.Reference != "" {
				line += ", of " + d.Reference
			}
			if d.ValidUntil != "" {
				line += ", until " + d.ValidUntil
			}
			say("%s", line)
		}
	case "escalation":
		if e := v.Escalation; e != nil {
			say("%s: by %s for %s of %s, %s, until %s, %s %s", e.ID, e.By, e.OnBehalfOf, e.Organisation, e.Urgency, e.Deadline, e.Status, e.DecidedBy)
			if len(what) > 1 && what[1] == "votes" {
				for _, vote := range e.Votes {
					say("  %s %s %s", vote.Decision, vote.By, jsonOf(vote.Authority))
				}
			}
			if len(what) > 1 && what[1] == "terms" {
				say("  terms %s", e.TermsHash)
			}
			if len(what) > 1 && what[1] == "amount" {
				say("  %s", jsonOf(e.Amount))
			}
		}
	case "authorities":
		for _, a := range v.Authorities {
			say("%s", jsonOf(a))
		}
	case "deadlines":
		for _, d := range v.Deadlines {
			say("%s %s %s", d.At, d.Code, d.Ref)
		}
	case "obligations":
		for _, o := range c.state.Obligations() {
			line := fmt.Sprintf("%s/%s of %s: %s", o.Commitment, o.ID, o.Party, o.Status())
			if o.Accepted != nil {
				line += ", accepted " + o.Accepted.RatString()
			}
			if o.Remains != nil {
				line += ", remains " + o.Remains.RatString() + " " + o.Unit
			}
			if o.Breaches > 0 {
				line += fmt.Sprintf(", breached %d times", o.Breaches)
			}
			say("%s", line)
		}
	case "disputes":
		for _, d := range c.state.Disputes() {
			line := fmt.Sprintf("%s of %s about entry %d, %s, %s", d.DisputeID, d.Side, d.Entry, d.Ground, d.Status)
			for _, r := range d.Replies {
				line += fmt.Sprintf(", %s by %s", r.Position, r.Side)
			}
			say("%s", line)
		}
	case "asked": // of disputes
		c.state.Escalations(func(item *escalation.Item) {
			if item.Dispute != "" {
				e := api.ViewEscalation(item)
				say("%s of %s: %s until %s, %s", item.Dispute, item.Principal, e.Status, e.Deadline, item.Body.Urgency)
			}
		})
		slices.Sort(lines)
	case "refusal": // the sentence of the last one
		say("%s", c.refusal)
	case "audience":
		say("%v", c.state.Audience())
	case "head":
		say("%s", jsonOf(v.Head))
	case "awaits":
		for _, name := range what[1:] {
			say("%s: %v", name, c.state.Awaits(c.registry[principals[name]], c.now))
		}
	case "reads":
		for _, name := range what[1:] {
			say("%s: %v", name, c.state.MayRead(principals[name], c.now))
		}
	case "entry":
		last := c.entries[len(c.entries)-1]
		m, stamp, _, err := performatives.ReadDelivered(last)
		if err != nil {
			return nil, err
		}
		var joined []string
		for _, j := range stamp.Joined {
			joined = append(joined, string(j.Agent)+"/"+j.Authority)
		}
		linkedBy := "broker"
		if m.Link != nil {
			linkedBy = "sender"
		}
		say("%s of %s, linked by %s, on behalf of %q, joined %v", m.Performative, m.Sender, linkedBy, stamp.OnBehalfOf, joined)
	case "grants": // of what Standing says now
		for _, d := range v.Delegations {
			g, _ := c.state.Grant(d.ID)
			say("%s: %v", d.ID, delegation.Standing(g, c.now, c.state.Grant))
		}
	default:
		return nil, fmt.Errorf("show what? %v", what)
	}
	return lines, nil
}

// partOf is a member that the mode adds to the view, nil for none.
func partOf(v api.SessionView, name string) jsontext.Value {
	parts := map[string]jsontext.Value{}
	if len(v.ModePart) > 0 && json.Unmarshal(v.ModePart, &parts) != nil {
		panic("the mode's part is no object: " + string(v.ModePart))
	}
	return parts[name]
}

func offerLine(o api.OfferView) string {
	line := fmt.Sprintf("%s%s of %s: %s", o.Proposal, o.Commitment, o.From, o.Status)
	for _, part := range []struct{ name, value string }{
		{"sent by ", map[bool]string{true: "", false: string(o.By)}[o.By == o.From]}, {"to ", string(o.To)}, {"replaces ", o.Supersedes},
		{"for ", o.Reference}, {"until ", o.ValidUntil}, {"", string(o.Terms)},
	} {
		if part.value != "" {
			line += ", " + part.name + part.value
		}
	}
	if len(o.AcceptedBy) > 0 {
		line += fmt.Sprintf(", accepted by %v", o.AcceptedBy)
	}
	if len(o.Pending) > 0 {
		line += fmt.Sprintf(", asked about %v", o.Pending)
	}
	return line
}
