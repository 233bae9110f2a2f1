package a2agateway

import (
	"cmp"
	"context"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
)

// open opens a session with the agent. What else the first message says is said once the
// invitation is accepted.
func (g *Gateway) open(ctx context.Context, c call, id performatives.SessionID, key string, asked performatives.Hash, s said) (accepted api.Acceptance, err error) {
	only := s.opensOnly()
	if !only {
		first, err := s.first(c)
		if err == nil {
			err = c.Fits(first)
		}
		if err != nil {
			return accepted, err
		}
	}
	purpose, _ := s.action["purpose"].(string)
	subject, _ := s.action["subject"].(string)
	mode, _ := s.action["mode"].(string)
	o := gateway.Opening{
		With: []performatives.Agent{c.to}, Mode: mode, Subject: subject,
		Purpose: cmp.Or(purpose, clip(s.text), subject, "negotiate"),
		Terms:   map[string]jsontext.Value{"invitationTimeoutMs": invitationTimeout},
	}
	if only {
		terms, _ := s.action["terms"].(map[string]any)
		for member, value := range terms {
			raw, err := json.Marshal(value, json.Deterministic(true))
			if err != nil {
				return accepted, invalid("data.terms is no JSON")
			}
			o.Terms[member] = raw
		}
	}
	invitation, err := o.Invitation()
	if err != nil {
		return accepted, invalid("the message is no UTF-8")
	}
	if invitation.Context, err = s.context(); err != nil {
		return accepted, err
	}
	invitation.Session, invitation.Key, invitation.Asked = id, key, asked
	accepted, err = c.Say(ctx, invitation)
	if err != nil || only {
		return accepted, err
	}
	return accepted, g.hold(ctx, c, accepted.Session, s)
}

// hold has a first message said once the invitation is accepted. What was said already is not
// said again.
func (g *Gateway) hold(ctx context.Context, c call, id performatives.SessionID, s said) error {
	first, err := s.first(c)
	if err != nil {
		return err
	}
	return g.followers.hold(ctx, c, id, first)
}

// first is the act of a first message, before there is anything that it could answer.
func (s said) first(c call) (first api.Say, err error) {
	if first, err = s.act(c, snapshot{}); err == nil {
		first.Context, err = s.context()
	}
	return first, err
}

func (s said) opensOnly() bool {
	name, _ := s.action["action"].(string)
	return strings.EqualFold(name, opens)
}

// invitationTimeout is in milliseconds: an agent may be one that polls for its turns.
var invitationTimeout = jsontext.Value("3600000")

func clip(s string) string {
	runes := []rune(s)
	if len(runes) <= maxText {
		return s
	}
	return string(runes[:maxText-1]) + "…"
}
