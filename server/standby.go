package server

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client/negotiator"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/modes"
)

// A standby of this process takes the turns that the agents of one organisation leave waiting,
// by Options.Standby. It is a principal like any other: it picks up and responds by the verbs.

const (
	standbyPoll  = time.Second
	standbyLease = time.Minute // after which a turn that it left waits again
)

// openStandbys registers the standbys of the organisations that have hosted agents, and takes
// their turns until the server is closed.
func (s *Server) openStandbys(ctx context.Context, o Options) error {
	organisations := map[performatives.Organisation]bool{}
	for card := range s.Broker.Parts.Registry.Agents("") {
		if _, hosted := s.Broker.Parts.Registry.HostedKey(card.Agent); hosted {
			organisations[card.Agent.Organisation()] = true
		}
	}
	for _, of := range slices.Sorted(maps.Keys(organisations)) {
		if err := s.Broker.Custody.AddStandby(ctx, of); err != nil {
			return err
		}
	}
	s.standbys = background.New()
	s.standbys.Go(func(ctx context.Context) { s.standBy(ctx, o) })
	return nil
}

func (s *Server) closeStandbys() {
	if s.standbys != nil {
		s.standbys.Close()
	}
}

// standBy takes turns until the context ends.
func (s *Server) standBy(ctx context.Context, o Options) {
	agents := map[performatives.Agent]*negotiator.Agent{}
	var registered uint64 // the registry's revision
	tick := time.NewTicker(standbyPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		found, revision := s.Broker.Parts.Registry.HostedStandbys(registered)
		registered = revision
		for _, a := range found {
			if agents[a] == nil {
				agents[a] = s.standby(a, o.Standby)
			}
		}
		for a, n := range agents {
			if len(s.Broker.Parts.List.Open(a)) == 0 {
				continue
			}
			if err := s.takeTurns(ctx, n, o.Log); err != nil && ctx.Err() == nil {
				o.Log.Warn("standby", zap.String("agent", string(a)), zap.Error(err))
			}
		}
	}
}

// takeTurns takes those that wait for a standby now.
func (s *Server) takeTurns(ctx context.Context, a *negotiator.Agent, log *zap.Logger) error {
	for {
		did, err := a.Step(ctx)
		switch {
		case errors.Is(err, negotiator.ErrLeft):
			log.Info("standby", zap.String("agent", string(a.Self)), zap.Error(err))
		case err != nil || did == "":
			return err
		default:
			log.Info("standby", zap.String("agent", string(a.Self)), zap.String("did", did))
		}
	}
}

// standby is one of this process. A policy that judges matches alone leaves the other modes to
// principals and people.
func (s *Server) standby(a performatives.Agent, p *negotiator.Policy) *negotiator.Agent {
	n := &negotiator.Agent{
		Self: a, Policy: p, Broker: turnTaker{s.Broker.Service.As(a)}, Worker: "standby-" + s.ID, Lease: standbyLease.Milliseconds(),
	}
	if len(p.Issues) == 0 {
		n.Modes = []string{modes.Bilateral.Name}
	}
	return n
}

// A turnTaker picks up and answers turns within the process.
type turnTaker struct{ gateway.Caller }

// PickUp claims the turn that has waited longest.
func (c turnTaker) PickUp(ctx context.Context, q api.PickUpTurn) (t api.Turn, err error) {
	return t, c.Call(ctx, api.TurnPickup.Verb, q, &t)
}

// RespondTurn answers a turn.
func (c turnTaker) RespondTurn(ctx context.Context, q api.RespondTurn) (a api.Acceptance, err error) {
	return a, c.Call(ctx, api.TurnRespond.Verb, q, &a)
}
