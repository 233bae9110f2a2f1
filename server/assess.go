package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/discovery"
	bindugateway "github.com/parley-asp/parley/gateway/bindu"
	"github.com/parley-asp/parley/internal/outbound"
	"github.com/parley-asp/parley/internal/publicnet"
	"github.com/parley-asp/parley/performatives"
)

// Embeddings is an endpoint that speaks OpenAI's embeddings; without a URL there is none.
type Embeddings struct{ URL, Model, Key string }

// bindu is how agents are assessed, who may ask, and how much.
func (s *Server) bindu(o Options, public, searches addressLimiter) bindugateway.Options {
	a := assessing{public, s.Broker.assessing}
	options := bindugateway.Options{Card: s.assessed, Turn: a.turn, Owner: a.owner, URL: strings.TrimSuffix(o.HTTPURL, "/"), Version: api.Version}
	if o.Embeddings.URL != "" {
		a.addressLimiter = searches // each may cost a paid call
		options.Similar = s.Broker.Options.Similar
	}
	options.Enter = a.enter
	if o.BinduAuth {
		options.Admit = func(r *http.Request) error {
			_, err := s.Broker.Service.AdmitHTTP(r)
			return err
		}
	}
	return options
}

// probeBounds are those of the requests to agents elsewhere.
var probeBounds = outbound.Bounds{All: 128, Principal: 20, Host: 16, Server: 8, Failures: 5, Pause: 30 * time.Second}

// probes asks agents elsewhere for callers: at public addresses, unless private ones are allowed.
func probes(private bool) func(context.Context, performatives.Agent, string, discovery.Task) (discovery.Assessment, error) {
	pool, client := outbound.New(probeBounds), publicnet.Client(api.MaxWait*time.Millisecond, private)
	return func(ctx context.Context, caller performatives.Agent, at string, task discovery.Task) (a discovery.Assessment, err error) {
		if err := publicnet.Check(at, private); err != nil {
			return a, err
		}
		to, err := url.Parse(at)
		if err != nil {
			return a, err
		}
		leave, err := pool.Enter(ctx, string(caller), to)
		if err != nil {
			return a, errors.New("it does not answer in time")
		}
		a, err = bindugateway.Probe(ctx, client, at, task)
		leave(err)
		switch {
		case err == nil, errors.Is(err, bindugateway.ErrProbe):
			return a, err
		case errors.Is(err, publicnet.ErrPrivate):
			return a, publicnet.ErrPrivate
		case ctx.Err() != nil:
			return a, errors.New("it does not answer in time")
		}
		return a, errors.New("it cannot be reached")
	}
}

// assessed is what an agent is assessed by.
func (s *Server) assessed(a performatives.Agent) (bindugateway.Card, bool) {
	card, profile, queue, known := s.Broker.Proposals.Card(a)
	return bindugateway.Card{Profile: profile, Queue: queue, Skills: card.Skills, Name: card.Name, Description: card.Description}, known
}

// assessing is the work of assessments: in turns of those who ask, and paid for by them and by the
// owners of cards.
type assessing struct {
	addressLimiter
	turns *limits.Scheduler
}

// enter counts a request that is being served.
func (a assessing) enter(r *http.Request) (leave func(), ok bool) {
	if !a.allow(r) {
		return nil, false
	}
	leave, err := a.accounts.At(a.from(r)).Hold(limits.InFlight, 1)
	return leave, err == nil
}

// turn works when it is the turn of who asks, unless that is too much.
func (a assessing) turn(r *http.Request, work func()) bool {
	account := a.accounts.At(a.from(r))
	wait, joined := a.turns.Join(account.Owner())
	if !joined {
		return false
	}
	slot, err := wait(r.Context())
	if err != nil {
		return false
	}
	defer slot.Release()
	if r.Context().Err() != nil || account.Admit(0, 0) != nil {
		return false
	}
	work()
	return true
}

// ofOwner is how many times an organisation is charged for the time that assessing its cards takes, so
// that they take no more than such a part of what one may use.
const ofOwner = 4

// owner is the account of a card's owner. It is for cards alone: who has them assessed does not keep
// their owner from anything else.
func (a assessing) owner(of performatives.Agent) (charge func(time.Duration), ok bool) {
	account := a.accounts.At("cards of " + string(of.Organisation()))
	return func(took time.Duration) { account.Spend(limits.CPU, ofOwner*took.Seconds()) }, account.Admit(0, 0) == nil
}
