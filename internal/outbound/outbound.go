// Package outbound bounds the requests that go out to servers of others: in all, of a principal,
// and to a host.
//
//	pool := outbound.New(outbound.Bounds{All: 64, Principal: 8, Host: 8, Server: 4, Failures: 5, Pause: 30 * time.Second})
//	leave, err := pool.Enter(ctx, principal, url)
//	if err != nil { … } // an *OpenError, or ctx has ended
//	err = call(ctx, url)
//	leave(err)
//
// Principals take turns, so whoever asks for little waits for one request of another's, however
// much the other asks for. What waits holds no connection. A server that fails a principal has a
// circuit breaker for that principal alone, so nobody can have another's calls held up.
package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds are those of the requests that are under way.
type Bounds struct {
	All       int // whoever makes them
	Principal int // of one principal
	Host      int // to one host
	Server    int // of one principal to one server, which is a host and a port

	Failures int           // in a row that open the circuit breaker; 0 is no breaker
	Pause    time.Duration // how long it is open; then one request is tried
}

// maxServers is how many servers are remembered at about the most.
const maxServers = 10_000

// A Pool counts the requests that are under way, and has others wait.
type Pool struct {
	bounds Bounds

	mu         sync.Mutex
	busy       int
	servers    int            // of all principals
	hosts      map[string]int // requests under way
	principals map[string]*principal
	turns      []*principal // those of whom some wait
}

// A principal has requests under way or waiting, or a server that failed it.
type principal struct {
	name    string
	busy    int
	servers map[string]*server
	turns   []*server // those for which some wait
}

// A server is one as a principal sees it.
type server struct {
	of         *principal
	name, host string
	busy       int
	waiting    []chan error // told nil, or why not
	failures   int          // in a row
	until      time.Time    // the circuit breaker is open
}

// An OpenError means that the circuit breaker of a server is open.
type OpenError struct {
	Server string
	Retry  time.Duration // when it is worth trying
}

func (e *OpenError) Error() string {
	return fmt.Sprintf("%s failed a moment ago and is left alone for %s", e.Server, e.Retry)
}

// New makes a pool.
func New(b Bounds) *Pool {
	return &Pool{bounds: b, hosts: map[string]int{}, principals: map[string]*principal{}}
}

// Enter waits for a principal's turn to call a URL. leave ends the call, and takes what it failed
// with: nil is an answer of the server. One that was cancelled says nothing of the server.
func (p *Pool) Enter(ctx context.Context, of string, to *url.URL) (leave func(error), err error) {
	p.mu.Lock()
	s := p.find(of, to)
	if wait := time.Until(s.until); wait > 0 {
		p.mu.Unlock()
		return nil, &OpenError{s.name, wait}
	}
	turn := make(chan error, 1)
	if len(s.waiting) == 0 {
		s.of.turns = append(s.of.turns, s)
		if len(s.of.turns) == 1 {
			p.turns = append(p.turns, s.of)
		}
	}
	s.waiting = append(s.waiting, turn)
	p.next()
	p.mu.Unlock()
	select {
	case err = <-turn:
	case <-ctx.Done():
		if !p.abandon(s, turn) {
			if err = <-turn; err == nil {
				p.leave(s, context.Canceled)
			}
		}
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return func(err error) { p.leave(s, err) }, nil
}

// find is the server of a URL as a principal sees it; under mu.
func (p *Pool) find(of string, to *url.URL) *server {
	a := p.principals[of]
	if a == nil {
		a = &principal{name: of, servers: map[string]*server{}}
		p.principals[of] = a
	}
	name := strings.ToLower(to.Host)
	s := a.servers[name]
	if s == nil {
		if p.servers >= maxServers {
			p.forgetIdle()
			p.principals[of] = a
		}
		s = &server{of: a, name: name, host: strings.ToLower(strings.TrimSuffix(to.Hostname(), "."))}
		a.servers[name] = s
		p.servers++
	}
	return s
}

// forgetIdle forgets the servers that are only remembered because they failed: those whose
// circuit breaker is closed by now, or else all; under mu.
func (p *Pool) forgetIdle() {
	for _, all := range []bool{false, true} {
		for _, a := range p.principals {
			for _, s := range a.servers {
				if all || time.Now().After(s.until) {
					p.forget(s)
				}
			}
		}
		if p.servers < maxServers {
			return
		}
	}
}

// forget forgets a server that is not in use; under mu.
func (p *Pool) forget(s *server) {
	if s.busy > 0 || len(s.waiting) > 0 {
		return
	}
	delete(s.of.servers, s.name)
	p.servers--
	if len(s.of.servers) == 0 {
		delete(p.principals, s.of.name)
	}
}

// next gives turns to those who wait, as many as there are: first to the principal with the fewest
// requests under way, and of those to the one who had a turn the longest time ago; under mu.
func (p *Pool) next() {
	for p.busy < p.bounds.All {
		var s *server
		for _, a := range p.turns {
			if a.busy < p.bounds.Principal && (s == nil || a.busy < s.of.busy) {
				if k := slices.IndexFunc(a.turns, p.admits); k >= 0 {
					s = a.turns[k]
				}
			}
		}
		if s == nil {
			return
		}
		p.turns, s.of.turns = last(p.turns, s.of), last(s.of.turns, s)
		p.count(s, 1)
		s.waiting[0] <- nil
		p.drop(s, 0, 1)
	}
}

// last moves one to the end.
func last[T comparable](all []T, one T) []T {
	k := slices.Index(all, one)
	return append(slices.Delete(all, k, k+1), one)
}

// admits reports whether one more request may go to a server; under mu.
func (p *Pool) admits(s *server) bool {
	most := p.bounds.Server
	if p.bounds.Failures > 0 && s.failures >= p.bounds.Failures {
		most = 1
	}
	return s.busy < most && p.hosts[s.host] < p.bounds.Host
}

func (p *Pool) count(s *server, n int) {
	p.busy += n
	s.busy += n
	s.of.busy += n
	if p.hosts[s.host] += n; p.hosts[s.host] == 0 {
		delete(p.hosts, s.host)
	}
}

// drop takes those who wait for a server out of its queue, from one to before another; under mu.
func (p *Pool) drop(s *server, from, to int) {
	if s.waiting = slices.Delete(s.waiting, from, to); len(s.waiting) > 0 {
		return
	}
	isIt := func(other *server) bool { return other == s }
	if s.of.turns = slices.DeleteFunc(s.of.turns, isIt); len(s.of.turns) == 0 {
		p.turns = slices.DeleteFunc(p.turns, func(a *principal) bool { return a == s.of })
	}
}

// abandon reports whether somebody who waited waits no more without having been told anything.
func (p *Pool) abandon(s *server, turn chan error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(s.waiting, turn)
	if i < 0 {
		return false
	}
	p.drop(s, i, i+1)
	if s.failures == 0 {
		p.forget(s)
	}
	return true
}

// leave ends a request. One failure too many opens the circuit breaker, also to those who wait.
func (p *Pool) leave(s *server, failed error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(s, -1)
	switch {
	case failed == nil:
		s.failures = 0
	case p.bounds.Failures > 0 && !errors.Is(failed, context.Canceled):
		if s.failures++; s.failures >= p.bounds.Failures {
			s.until = time.Now().Add(p.bounds.Pause)
			for _, turn := range s.waiting {
				turn <- &OpenError{s.name, p.bounds.Pause}
			}
			p.drop(s, 0, len(s.waiting))
		}
	}
	if s.failures == 0 {
		p.forget(s)
	}
	p.next()
}

// Transport makes requests in turns, each of its host as the principal. A turn ends when the
// answer's body is closed.
func (p *Pool) Transport(inner http.RoundTripper) http.RoundTripper { return transport{p, inner} }

type transport struct {
	pool  *Pool
	inner http.RoundTripper
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	leave, err := t.pool.Enter(r.Context(), r.URL.Hostname(), r.URL)
	if err != nil {
		if r.Body != nil {
			r.Body.Close() //nolint:errcheck // it is not sent
		}
		return nil, err
	}
	answer, err := t.inner.RoundTrip(r)
	if err != nil {
		leave(err)
		return nil, err
	}
	answer.Body = &body{answer.Body, sync.OnceFunc(func() { leave(nil) })}
	return answer, nil
}

type body struct {
	io.ReadCloser
	leave func()
}

func (b *body) Close() error {
	defer b.leave()
	return b.ReadCloser.Close()
}
