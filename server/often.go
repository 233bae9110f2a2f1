package server

import (
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of requests that need no token, of each address.
const (
	publicRate   = 50 // a second
	publicBurst  = 200
	maxAddresses = 10_000 // that are remembered
)

// often counts the requests of each address on paths that are open to everybody.
type often struct {
	from func(*http.Request) string

	mu    sync.Mutex
	rates map[string]*rate.Limiter // by address
}

func newOften(from func(*http.Request) string) *often {
	return &often{from: from, rates: map[string]*rate.Limiter{}}
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
		limiter = rate.NewLimiter(publicRate, publicBurst)
		o.rates[address] = limiter
	}
	return limiter.Allow()
}

// forget drops the addresses that may ask as often as new ones, or else all.
func (o *often) forget(now time.Time) {
	for address, limiter := range o.rates {
		if limiter.TokensAt(now) >= publicBurst {
			delete(o.rates, address)
		}
	}
	if len(o.rates) >= maxAddresses {
		clear(o.rates)
	}
}
