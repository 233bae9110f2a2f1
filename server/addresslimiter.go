package server

import (
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of requests that need no token.
const (
	cheapRate    = 1_000  // a second of an address, of what costs little: an assessment, a DID document
	searchRate   = 50     // of what reads all cards
	maxAddresses = 10_000 // that are remembered
	logReaders   = 16     // of the public log, by all together; others wait
)

// An addressLimiter bounds the requests of each address on paths that are open to everybody.
type addressLimiter struct {
	from  func(*http.Request) string
	rate  rate.Limit // a second
	burst int        // after a pause: what four seconds have

	mu    sync.Mutex
	rates map[string]*rate.Limiter // by address
}

func newAddressLimiter(from func(*http.Request) string, perSecond int) *addressLimiter {
	return &addressLimiter{from: from, rate: rate.Limit(perSecond), burst: 4 * perSecond, rates: map[string]*rate.Limiter{}}
}

// limitConcurrency serves only so many requests at once.
func limitConcurrency(most int, handler http.Handler) http.Handler {
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
func (l *addressLimiter) limit(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !l.allow(r) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests from your address", http.StatusTooManyRequests)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// allow counts a request; false is too many.
func (l *addressLimiter) allow(r *http.Request) bool {
	address := l.from(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.rates[address]
	if limiter == nil {
		if len(l.rates) >= maxAddresses {
			l.forget(time.Now())
		}
		limiter = rate.NewLimiter(l.rate, l.burst)
		l.rates[address] = limiter
	}
	return limiter.Allow()
}

// forget drops the addresses that may ask as often as new ones, or else all.
func (l *addressLimiter) forget(now time.Time) {
	for address, limiter := range l.rates {
		if limiter.TokensAt(now) >= float64(l.burst) {
			delete(l.rates, address)
		}
	}
	if len(l.rates) >= maxAddresses {
		clear(l.rates)
	}
}
