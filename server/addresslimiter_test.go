package server

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
)

// An address that asks too often is refused, others are not, and few are remembered.
func TestOften(t *testing.T) {
	t.Parallel()
	address := "192.0.2.1"
	o := newAddressLimiter(func(*http.Request) string { return address }, searchRate)
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	refused := 0
	for range 2 * o.burst {
		if !o.allow(r) {
			refused++
		}
	}
	if refused == 0 {
		t.Error("one address asks as often as it likes")
	}
	for i := range maxAddresses + 10 {
		address = strconv.Itoa(i)
		if !o.allow(r) {
			t.Fatal("another address is refused")
		}
	}
	if len(o.rates) > maxAddresses {
		t.Errorf("%d addresses are remembered", len(o.rates))
	}
}

// What costs much to read is read by few at a time; the others wait.
func TestAtATime(t *testing.T) {
	t.Parallel()
	inside, goOn := make(chan struct{}, 3), make(chan struct{})
	h := limitConcurrency(2, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		inside <- struct{}{}
		<-goOn
	}))
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)) })
	}
	<-inside
	<-inside
	if len(inside) > 0 {
		t.Error("three at a time")
	}
	close(goOn)
	all.Wait()
	if len(inside) != 1 {
		t.Error("one was not served")
	}
}
