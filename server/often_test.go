package server

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
)

// An address that asks too often is refused, others are not, and few are remembered.
func TestOften(t *testing.T) {
	t.Parallel()
	address := "192.0.2.1"
	o := newOften(func(*http.Request) string { return address })
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	refused := 0
	for range 2 * publicBurst {
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
