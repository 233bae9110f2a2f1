package demo

import (
	"context"
	"errors"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// An Opener shows the page of a deal until the context ends. The URL signs a browser in, once.
type Opener func(ctx context.Context, r Report, url string) error

// ErrRunning says that a deal is opened only on a broker that the demo starts: on another one, who may read
// the deal is for its operator to say.
var ErrRunning = errors.New("the demo opens a deal only on a broker that it starts")

// ownerOf is the human who reads the deals of an agent's organisation.
func ownerOf(a performatives.Agent) performatives.Agent {
	return performatives.Agent("human://" + string(a.Organisation()) + "/owner")
}

// owners are rules by which the demo's owner reads the deals of the organisations that play roles.
func owners(list []scene) *escalation.Rules {
	rules := &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{}}
	for _, sc := range list {
		who := ownerOf(sc.roles[0].agent)
		rules.Organisations[who.Organisation()] = &escalation.Organisation{Roles: map[string][]string{escalation.RoleOwner: {string(who)}}}
	}
	return rules
}

// show registers an owner, makes the code by which a browser signs in, and shows the last deal.
func (s *stage) show(ctx context.Context, open Opener, a performatives.Agent, r Report) error {
	who := ownerOf(a)
	signer, err := performatives.NewKey() // that nobody has: the browser makes its own
	if err != nil {
		return err
	}
	if _, err := s.operator.AddAgent(ctx, api.Card{Agent: who, Name: "Owner", Kind: performatives.KindHuman, Key: signer.Key()}); err != nil {
		return err
	}
	enrolment, err := client.Do(ctx, s.operator, api.HumanEnrol, api.EnrolHuman{Agent: who})
	if err != nil {
		return err
	}
	deal := string(r.Scenes[len(r.Scenes)-1].Session)
	return open(ctx, r, "http://"+s.server.HTTPAddr+"/inbox/login?next=sessions/"+deal+"#code="+enrolment.Code)
}
