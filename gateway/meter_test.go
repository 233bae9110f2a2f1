package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

const reader = performatives.Agent("agent://acme.com/reader")

// metered is a broker that answers each call with 100 bytes, and has these limits.
func metered(l limits.Limits) (*gateway.Service, *limits.Accounts) {
	stopped := time.Now()
	accounts := limits.NewAccounts(l.WithDefaults(), func() time.Time { return stopped })
	return &gateway.Service{
		Accounts: accounts,
		Tokens:   func(context.Context, string) (custody.Pass, error) { return custody.Pass{Agent: reader}, nil },
		Charge: func(a performatives.Agent, requests int) error {
			return accounts.Of(a).Admit(requests, 0)
		},
		CallAs: func(context.Context, performatives.Agent, string, []byte) ([]byte, error) {
			return make([]byte, 100), nil
		},
	}, accounts
}

func noAddress(*http.Request) limits.Account { return limits.Account{} }

// serve serves one request by a handler.
func serve(h http.HandlerFunc) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer t")
	gateway.MeteredHTTP(h, noAddress).ServeHTTP(httptest.NewRecorder(), r)
}

func limited(t *testing.T, err error, limit string) {
	t.Helper()
	refusal, is := errors.AsType[*session.Refusal](err)
	if !is || refusal.Code != session.RateLimited {
		t.Errorf("%v, want rate_limited", err)
		return
	}
	if d, is := refusal.Details.(api.Limited); !is || d.Limit != limit {
		t.Errorf("limited by %+v, want %s", refusal.Details, limit)
	}
}

// What is written is charged to whoever turns out to ask, and to nobody while that is not known; who
// owes is not let in.
func TestWritten(t *testing.T) {
	t.Parallel()
	s, accounts := metered(limits.Limits{BytesOut: 1000})
	serve(func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 5000)) }) //nolint:errcheck // it is recorded
	serve(func(w http.ResponseWriter, r *http.Request) {
		w.Write(make([]byte, 400)) //nolint:errcheck // it is recorded
		if _, err := s.AdmitHTTP(r); err != nil {
			t.Error(err)
		}
		w.Write(make([]byte, 600)) //nolint:errcheck // it is recorded
	})
	if err := accounts.Of(reader).Admit(0, 0); err != nil {
		t.Errorf("it owes nothing: %v", err)
	}
	serve(func(w http.ResponseWriter, r *http.Request) {
		if _, err := s.AdmitHTTP(r); err != nil {
			t.Error(err)
		}
		gateway.Wrote(r.Context(), 1)
	})
	serve(func(_ http.ResponseWriter, r *http.Request) {
		_, err := s.AdmitHTTP(r)
		limited(t, err, "bytesOut")
	})
}

// A request for which nobody was charged is charged to its address, and what that owes keeps out who has no name.
func TestNobodyPays(t *testing.T) {
	t.Parallel()
	s, accounts := metered(limits.Limits{})
	charge := true
	h := gateway.MeteredHTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if charge {
			if _, err := s.AdmitHTTP(r); err != nil {
				t.Error(err)
			}
		}
	}), func(*http.Request) limits.Account { return accounts.At("192.0.2.1") })
	answered := func(token string) int {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		if token != "" {
			r.Header.Set("Authorization", token)
		}
		h.ServeHTTP(w, r)
		return w.Code
	}
	for range 5 * limits.AddressRate {
		answered("Bearer t")
	}
	charge = false
	for n := range 4*limits.AddressRate + 1 {
		if code := answered(""); code != http.StatusOK {
			t.Fatalf("request %d is answered %d", n, code)
		}
	}
	if code := answered(""); code != http.StatusTooManyRequests {
		t.Errorf("an address that owes is answered %d", code)
	}
	if charge = true; answered("Bearer t") != http.StatusOK {
		t.Error("who has a token is kept out")
	}
}

// Answers of the broker are held until the request is over; those of a stream until the page is.
func TestBuffered(t *testing.T) {
	t.Parallel()
	s, _ := metered(limits.Limits{Buffered: 250})
	call := func(ctx context.Context, c gateway.Caller) error {
		_, err := c.CallJSON(ctx, "session.get", nil)
		return err
	}
	for range 2 { // what one request held is given back
		serve(func(_ http.ResponseWriter, r *http.Request) {
			c, err := s.AdmitHTTP(r)
			for range 3 { // the third is what makes it too much
				err = errors.Join(err, call(r.Context(), c))
			}
			if err != nil {
				t.Error(err)
			}
			limited(t, call(r.Context(), c), "buffered")
			serve(func(_ http.ResponseWriter, other *http.Request) { // of the same caller
				c, _ := s.AdmitHTTP(other)
				limited(t, call(other.Context(), c), "buffered")
			})
			leave, err := c.EnterStream(r.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer leave()
			for range 10 {
				page, end := gateway.Page(r.Context())
				if err := call(page, c); err != nil {
					t.Error(err)
				}
				end()
			}
			page, end := gateway.Page(r.Context())
			defer end()
			for range 3 {
				if err := call(page, c); err != nil {
					t.Error(err)
				}
			}
			limited(t, call(page, c), "buffered")
		})
	}
	if err := call(t.Context(), s.As(reader)); err != nil {
		t.Errorf("without a request, nothing is held: %v", err)
	}
}

// A client is told in how many seconds to ask again, at least one.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for want, refusal := range map[string]*session.Refusal{
		"1": session.Busy(),
		"2": api.RateLimited("rate", 1001*time.Millisecond, ""),
		"3": api.Refused(api.RateLimited("rate", 3*time.Second, "")).Refusal(), // as it comes over NATS
	} {
		if got := gateway.RetryAfter(refusal); got != want {
			t.Errorf("%+v: %s, want %s", refusal, got, want)
		}
	}
}

// A large request is worked on when there is a slot, until the broker is asked. A small one waits for none.
func TestLargeTakesTurns(t *testing.T) {
	t.Parallel()
	const many = gateway.MaxBody
	s, accounts := metered(limits.Limits{Buffered: many + 100})
	for range runtime.GOMAXPROCS(0)/2 - 1 { // one is left
		accounts.LargeRead(many).Enter("agent://acme.com/other")
	}
	free := func() bool {
		wait, _ := accounts.LargeRead(many).Join("agent://acme.com/other")
		ended, end := context.WithCancel(t.Context())
		end()
		slot, err := wait(ended)
		if err == nil {
			slot.Release()
		}
		return err == nil
	}
	answer := s.CallAs
	s.CallAs = func(ctx context.Context, a performatives.Agent, verb string, request []byte) ([]byte, error) {
		if !free() {
			t.Error("the broker is asked in the turn")
		}
		return answer(ctx, a, verb, request)
	}
	ask := false
	for _, size := range []int{10, many, many + 1, many} {
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(make([]byte, size)))
		r.Header.Set("Authorization", "Bearer t")
		gateway.MeteredHTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, err := s.AdmitHTTP(r)
			if err != nil {
				t.Fatal(err)
			}
			switch data, err := c.ReadBody(w, r); {
			case size > many:
				if !errors.Is(err, &session.Refusal{Code: session.TooLarge}) {
					t.Errorf("%d bytes: %v", size, err)
				}
			case err != nil || len(data) != size:
				t.Errorf("%d bytes: %d were read, %v", size, len(data), err)
			}
			if free() == (size == many) {
				t.Errorf("%d bytes: the last slot is free: %v", size, free())
			}
			if size != many {
				return
			}
			serve(func(w http.ResponseWriter, r *http.Request) { // another one of the same caller
				r.Body = io.NopCloser(bytes.NewReader(make([]byte, many)))
				_, err := c.ReadBody(w, r)
				limited(t, err, "buffered")
			})
			if ask = !ask; !ask { // before it is answered, at the latest
				if w.Write(nil); !free() { //nolint:errcheck // it is recorded
					t.Error("the slot is held while the client takes the answer")
				}
				return
			}
			if _, err := c.CallJSON(r.Context(), "session.get", nil); err != nil {
				t.Error(err)
			}
		}), noAddress).ServeHTTP(httptest.NewRecorder(), r)
		if !free() {
			t.Errorf("%d bytes: the slot was not given back", size)
		}
	}
}
