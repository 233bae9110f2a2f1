package server

import (
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of requests that need no token.
const (
	askedOften   = 1_000  // a second of an address, of what costs little: an assessment, a DID document
	searched     = 50     // of what reads all cards
	maxAddresses = 10_000 // that are remembered
	readAtATime  = 16     // of the public log, by all together; others wait
)

// often counts the requests of each address on paths that are open to everybody.
type often struct {
	from  func(*http.Request) string
	rate  rate.Limit // a second
	burst int        // after a pause: what four seconds have

	mu    sync.Mutex
	rates map[string]*rate.Limiter // by address
}

func newOften(from func(*http.Request) string, perSecond int) *often {
	return &often{from: from, rate: rate.Limit(perSecond), burst: 4 * perSecond, rates: map[string]*rate.Limiter{}}
}

// atATime serves only so many requests at once.
func atATime(most int, handler http.Handler) http.Handler {
	slots := make(chan struct{}, most)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			handler.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// limit refuses requests of addresses that ask too often.
func (o *often) limit(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !o.allow(r) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests from your address", http.StatusTooManyRequests)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// allow counts a request; false is too many.
func (o *often) allow(r *http.Request) bool {
	address := o.from(r)
	o.mu.Lock()
	defer o.mu.Unlock()
	limiter := o.rates[address]
	if limiter == nil {
		if len(o.rates) >= maxAddresses {
			o.forget(time.Now())
		}
		limiter = rate.NewLimiter(o.rate, o.burst)
		o.rates[address] = limiter
	}
	return limiter.Allow()
}

// forget drops the addresses that may ask as often as new ones, or else all.
func (o *often) forget(now time.Time) {
	for address, limiter := range o.rates {
		if limiter.TokensAt(now) >= float64(o.burst) {
			delete(o.rates, address)
		}
	}
	if len(o.rates) >= maxAddresses {
		clear(o.rates)
	}
}
