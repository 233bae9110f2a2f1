package server

import (
	"net/http"
	"time"

	"github.com/parley-asp/parley/broker/limits"
	bindugateway "github.com/parley-asp/parley/gateway/bindu"
	"github.com/parley-asp/parley/performatives"
)

// Embeddings is an endpoint that speaks OpenAI's embeddings; without a URL there is none.
type Embeddings struct{ URL, Model, Key string }

// bindu is how agents are assessed, who may ask, and how much.
func (s *Server) bindu(o Options, public, searches addressLimiter) bindugateway.Options {
	a := assessing{public, s.Broker.assessing}
	options := bindugateway.Options{Card: s.assessed, Turn: a.turn, Owner: a.owner}
	if o.Embeddings.URL != "" {
		a.addressLimiter = searches // each may cost a paid call
		options.Similar = bindugateway.NewEmbeddings(o.Embeddings.URL, o.Embeddings.Model, o.Embeddings.Key).Similarity
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

// assessed is what an agent is assessed by.
func (s *Server) assessed(a performatives.Agent) (bindugateway.Card, bool) {
	card, profile, queue, known := s.Broker.Proposals.Card(a)
	return bindugateway.Card{Profile: profile, Queue: queue, Skills: card.Skills}, known
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
	slot := wait()
	defer slot.Done()
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
