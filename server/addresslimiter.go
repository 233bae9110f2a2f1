package server

import (
	"net/http"
	"sync"

	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/gateway"
)

// Bounds of requests that need no token.
const (
	ofOneSearch = 20 // requests that one counts as that reads all cards
	logReaders  = 16 // of the public log, by all together; others wait for their address's turn
)

// An addressLimiter charges requests on paths that are open to everybody to the addresses that
// they come from.
type addressLimiter struct {
	accounts *limits.Accounts
	from     func(*http.Request) string
	requests int // that each counts as
}

// limit refuses requests of addresses that ask too often.
func (l addressLimiter) limit(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !l.allow(r) {
			gateway.TooMany(w)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// account is that of the address that a request comes from.
func (l addressLimiter) account(r *http.Request) limits.Account { return l.accounts.At(l.from(r)) }

// allow charges a request; false is too many, or that the address owes something.
func (l addressLimiter) allow(r *http.Request) bool {
	account := l.account(r)
	if account.Admit(l.requests, 0) != nil {
		return false
	}
	gateway.ChargeTo(r.Context(), account)
	return true
}

// readers serve what costs something to read, and is open to everybody: few requests at once, in turns
// of their addresses. A request holds its slot until its answer begins, however slowly that is taken.
type readers struct {
	accounts *limits.Accounts
	from     func(*http.Request) string
	turns    *limits.Scheduler
}

func (s readers) limit(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		account := s.accounts.At(s.from(r))
		leave, err := account.Hold(limits.InFlight, 1)
		if err != nil {
			gateway.TooMany(w)
			return
		}
		defer leave()
		done := sync.OnceFunc(s.turns.Enter(account.Owner()).Release)
		defer done()
		handler.ServeHTTP(&readWriter{w, done}, r)
	})
}

// A readWriter writes what has been read.
type readWriter struct {
	http.ResponseWriter
	read func()
}

func (w *readWriter) WriteHeader(status int) {
	w.read()
	w.ResponseWriter.WriteHeader(status)
}

func (w *readWriter) Write(data []byte) (int, error) {
	w.read()
	return w.ResponseWriter.Write(data)
}

func (w *readWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
