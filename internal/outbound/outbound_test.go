package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-asp/parley/internal/outbound"
)

var errSilent = errors.New("no answer")

// A pool, and the requests that are under way, in the order in which they began.
type pool struct {
	*outbound.Pool
	t     *testing.T
	began chan request
}

type request struct {
	of    string
	leave func(error)
	err   error
}

func newPool(t *testing.T, b outbound.Bounds) *pool {
	t.Helper()
	return &pool{outbound.New(b), t, make(chan request, 1000)}
}

// enter asks for a turn in the background, and returns once it has it or waits for it.
func (p *pool) enter(ctx context.Context, of, to string) {
	p.t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		p.t.Fatal(err)
	}
	go func() {
		leave, err := p.Enter(ctx, of, u)
		p.began <- request{of, leave, err}
	}()
	synctest.Wait()
}

// expect takes the requests that have begun, which are of these principals.
func (p *pool) expect(of ...string) (all []request) {
	p.t.Helper()
	synctest.Wait()
	for len(p.began) > 0 {
		all = append(all, <-p.began)
	}
	var got []string
	for _, r := range all {
		got = append(got, r.of)
	}
	if fmt.Sprint(got) != fmt.Sprint(of) {
		p.t.Fatalf("requests of %v begin, want %v", got, of)
	}
	return all
}

// pass lets time pass on the clock of the bubble.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	<-ctx.Done()
}

// Each bound has others wait: of a principal to a server, of a principal, to a host, in all.
func TestBounds(t *testing.T) {
	t.Parallel()
	for name, servers := range map[string]func(n int) (of, to string){
		"server":    func(int) (string, string) { return "eve", "https://sink.example/" },
		"principal": func(n int) (string, string) { return "eve", fmt.Sprintf("https://sink%d.example/", n) },
		"host": func(n int) (string, string) {
			return fmt.Sprintf("eve%d", n), fmt.Sprintf("https://SINK.example.:%d/", n+1)
		},
		"all": func(n int) (string, string) {
			return fmt.Sprintf("eve%d", n), fmt.Sprintf("https://sink%d.example/", n)
		},
	} {
		most := map[string]int{"server": 2, "principal": 3, "host": 4, "all": 5}[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPool(t, outbound.Bounds{Server: 2, Principal: 3, Host: 4, All: 5})
				var want []string
				for n := range 7 {
					of, to := servers(n)
					p.enter(t.Context(), of, to)
					want = append(want, of)
				}
				busy := p.expect(want[:most]...)
				for _, of := range want[most:] {
					busy[0].leave(nil)
					busy = append(busy[1:], p.expect(of)...)
				}
				for _, r := range busy {
					r.leave(nil)
				}
			})
		})
	}
}

// Whoever asks for little has the next turn, however many requests of another wait.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, outbound.Bounds{Server: 2, Principal: 2, Host: 2, All: 2})
		for range 100 {
			p.enter(t.Context(), "eve", "https://one.example/")
			p.enter(t.Context(), "eve", "https://two.example/")
		}
		busy := p.expect("eve", "eve")
		p.enter(t.Context(), "alice", "https://one.example/")
		busy[0].leave(nil)
		alice := p.expect("alice")
		p.enter(t.Context(), "alice", "https://two.example/")
		busy[1].leave(nil)
		busy = p.expect("eve")
		alice[0].leave(nil)
		alice = p.expect("alice")
		alice[0].leave(nil)
		for left := 200 - 3; left > 0; left-- {
			busy = append(busy, p.expect("eve")...)
			busy[0].leave(nil)
			busy = busy[1:]
		}
		for _, r := range busy {
			r.leave(nil)
		}
		p.expect()
	})
}

// Who waits no more holds no turn, also if it comes at that moment.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, outbound.Bounds{Server: 1, Principal: 1, Host: 1, All: 1})
		for range 100 {
			p.enter(t.Context(), "alice", "https://one.example/")
			alice := p.expect("alice")
			ctx, cancel := context.WithCancel(t.Context())
			p.enter(ctx, "eve", "https://one.example/")
			go cancel()
			alice[0].leave(nil)
			if eve := p.expect("eve"); eve[0].err == nil {
				eve[0].leave(nil)
			}
			cancel()
		}
	})
}

// A server that fails is left alone for a while, by the principal that it failed; then one request is tried.
func TestCircuitBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, outbound.Bounds{Server: 2, Principal: 9, Host: 9, All: 9, Failures: 3, Pause: time.Minute})
		const sink = "https://sink.example/"
		broken := func(r request, retry time.Duration) {
			t.Helper()
			if open, is := errors.AsType[*outbound.OpenError](r.err); !is || open.Retry != retry {
				t.Errorf("%v, want to be told to come back in %s", r.err, retry)
			}
		}
		for range 5 {
			p.enter(t.Context(), "eve", sink)
		}
		first := p.expect("eve", "eve")
		first[0].leave(errSilent)
		first[1].leave(errSilent)
		second := p.expect("eve", "eve") // one of the five waits
		second[0].leave(fmt.Errorf("shut down: %w", context.Canceled))
		third := p.expect("eve")
		p.enter(t.Context(), "eve", sink)
		third[0].leave(errSilent)
		broken(p.expect("eve")[0], time.Minute) // that one waited
		p.enter(t.Context(), "eve", sink)
		broken(p.expect("eve")[0], time.Minute)
		p.enter(t.Context(), "alice", sink)
		p.expect("alice")[0].leave(nil)
		p.enter(t.Context(), "eve", "https://sink.example:8443/")
		p.expect("eve")[0].leave(nil)
		second[1].leave(context.Canceled)

		pass(t, time.Minute)
		for range 2 {
			p.enter(t.Context(), "eve", sink)
		}
		p.expect("eve")[0].leave(errSilent) // one is tried
		broken(p.expect("eve")[0], time.Minute)

		pass(t, time.Minute)
		for range 3 {
			p.enter(t.Context(), "eve", sink)
		}
		p.expect("eve")[0].leave(nil) // it works again
		for _, r := range p.expect("eve", "eve") {
			r.leave(nil)
		}
	})
}

// A turn of a Transport ends with the answer's body.
func TestTransport(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hello")) })) //nolint:errcheck // a test
	defer server.Close()
	client := &http.Client{Transport: outbound.New(outbound.Bounds{All: 1, Principal: 1, Host: 1, Server: 1}).Transport(http.DefaultTransport)}
	ask := func(ctx context.Context) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		return client.Do(r)
	}
	first, err := ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if second, err := ask(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while a body is read, another request is made: %v", err)
		second.Body.Close()
	}
	for range 3 {
		first.Body.Close()
		if first, err = ask(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first.Body.Close()
}
