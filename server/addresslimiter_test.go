package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-asp/parley/broker/limits"
)

// An address that asks too often is refused, and others are not; a search is charged as many requests.
func TestOften(t *testing.T) {
	t.Parallel()
	address := "192.0.2.1"
	accounts := limits.NewAccounts(limits.Limits{}.WithDefaults(), func() time.Time { return time.Time{} })
	from := func(*http.Request) string { return address }
	cheap, searches := addressLimiter{accounts, from, 1}, addressLimiter{accounts, from, ofOneSearch}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	allowed := 0
	for searches.allow(r) {
		allowed++
	}
	if want := 4 * limits.AddressRate / ofOneSearch; allowed != want || cheap.allow(r) {
		t.Errorf("%d searches are allowed at once, want %d and nothing after them", allowed, want)
	}
	address = "192.0.2.2"
	if !cheap.allow(r) || !searches.allow(r) {
		t.Error("another address is refused")
	}
}

// What costs something to read is read by few at a time, in turns of addresses. Those whose answers
// nobody takes do not count, and an address has a bound.
func TestReaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, read, taken := make(chan string, 10), make(chan struct{}), make(chan struct{})
		from := func(r *http.Request) string { return r.RemoteAddr }
		accounts := limits.NewAccounts(limits.Limits{InFlight: 3}.WithDefaults(), time.Now)
		h := readers{accounts, from, accounts.Scheduler(1, 0)}.limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began <- r.RemoteAddr
			<-read
			w.WriteHeader(http.StatusOK)
			<-taken
		}))
		answered := make(chan int, 10)
		for _, address := range []string{"evil", "evil", "evil", "evil", "innocent"} {
			go func() {
				w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
				r.RemoteAddr = address
				h.ServeHTTP(w, r)
				answered <- w.Code
			}()
			synctest.Wait()
		}
		if code := <-answered; code != http.StatusTooManyRequests || len(answered) > 0 {
			t.Errorf("the fourth request of an address is answered %d", code)
		}
		for n, want := range []string{"evil", "evil", "innocent", "evil"} {
			if synctest.Wait(); len(began) != 1 {
				t.Fatalf("after %d, %d are read at a time", n, len(began))
			}
			if got := <-began; got != want {
				t.Errorf("request %d is %s's, want %s's", n, got, want)
			}
			read <- struct{}{}
		}
		close(taken)
		for range 4 {
			if code := <-answered; code != http.StatusOK {
				t.Error(fmt.Sprint("answered ", code))
			}
		}
	})
}
