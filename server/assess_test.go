package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-asp/parley/broker/limits"
)

// Assessing goes in turns of addresses, and whoever asks for much is refused while others are served;
// so are the cards of an owner that cost much.
func TestAssessing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := func(r *http.Request) string { return r.RemoteAddr }
		accounts := limits.NewAccounts(limits.Limits{CPU: 900 * time.Millisecond}.WithDefaults(), time.Now)
		a := assessing{addressLimiter{accounts, from, 1}, accounts.Scheduler(1, maxAssessing)}
		began, goOn := make(chan string, 100), make(chan struct{})
		turn := func(address string) bool {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.RemoteAddr = address
			return a.turn(r, func() {
				began <- address
				<-goOn
			})
		}
		refused := make(chan string, 100)
		for range 16 {
			go func() {
				if !turn("evil") {
					refused <- "evil"
				}
			}()
		}
		synctest.Wait()
		go turn("innocent")
		synctest.Wait()
		pass := func(d time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			<-ctx.Done()
		}
		for n, want := range []string{"evil", "innocent"} { // then evil has spent more than it has for a minute
			if got := <-began; got != want {
				t.Errorf("turn %d is %s's, want %s's", n, got, want)
			}
			pass(time.Second)
			goOn <- struct{}{}
			synctest.Wait()
		}
		if len(began) > 0 || len(refused) != 15 {
			t.Errorf("%d began, %d are refused", len(began), len(refused))
		}
		charge, _ := a.owner("agent://evil.example/eve")
		charge(time.Second)
		if _, ok := a.owner("agent://evil.example/mate"); ok {
			t.Error("a card is assessed whose owner has nothing left")
		}
		if _, ok := a.owner("agent://acme.com/alpha"); !ok {
			t.Error("a card is not assessed because of another's")
		}
		pass(2 * time.Minute)
		if _, ok := a.owner("agent://evil.example/eve"); !ok {
			t.Error("two minutes later it is not assessed")
		}
	})
}
