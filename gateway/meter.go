package gateway

import (
	"context"
	"net/http"
	"sync"

	"github.com/parley-asp/parley/broker/limits"
)

// A meter charges one request to whoever asks, once that is known: the bytes that are written, and
// those of answers of the broker, which are held until the request is over. Of a stream, which may
// last, a page is held at a time.
type meter struct {
	mu      sync.Mutex
	account limits.Account
	known   bool // whose account
	written int  // before that
	stream  bool
	held    []func()
	slot    *limits.Slot // in which a large request is worked on
}

type meterKey struct{}

func meterOf(ctx context.Context) *meter {
	m, _ := ctx.Value(meterKey{}).(*meter)
	return m
}

// Metered is a context for one request, which is over at end.
func Metered(ctx context.Context) (metered context.Context, end func()) {
	m := new(meter)
	return context.WithValue(ctx, meterKey{}, m), m.end
}

// MeteredHTTP meters the requests of a handler. One for which nobody was charged, such as of a path that there is not,
// is charged to the account that address returns.
func MeteredHTTP(h http.Handler, address func(*http.Request) limits.Account) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		account := address(r)
		if nameless(r) {
			if err := account.Admit(0, 0); err != nil {
				TooMany(w)
				return
			}
		}
		ctx, end := Metered(r.Context())
		defer end()
		defer meterOf(ctx).unpaid(account)
		h.ServeHTTP(meteredWriter{w, meterOf(ctx)}, r.WithContext(ctx))
	})
}

// TooMany refuses a request of an address that asks too often.
func TooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "too many requests from your address", http.StatusTooManyRequests)
}

// nameless reports whether a request carries nothing that says whose it is.
func nameless(r *http.Request) bool {
	h := r.Header
	return h.Get("Authorization") == "" && h.Get("X-Api-Key") == "" && h.Get("Cookie") == ""
}

// unpaid charges a request to an account, unless it is known whose it is.
func (m *meter) unpaid(a limits.Account) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.known {
		a.Spend(limits.Requests, 1)
		a.Spend(limits.BytesOut, float64(m.written))
	}
}

type meteredWriter struct {
	http.ResponseWriter
	meter *meter
}

func (w meteredWriter) Write(data []byte) (int, error) {
	w.meter.wrote(len(data))
	return w.ResponseWriter.Write(data)
}

// FlushError sends what was written.
func (w meteredWriter) FlushError() error {
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush is FlushError for those who look for an http.Flusher.
func (w meteredWriter) Flush() { w.FlushError() } //nolint:errcheck // the client went away

func (w meteredWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ChargeTo charges the request of a context to an account.
func ChargeTo(ctx context.Context, a limits.Account) {
	m := meterOf(ctx)
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.account, m.known = a, true
	a.Spend(limits.BytesOut, float64(m.written))
	m.written = 0
}

// Metered charges the request of a context to the caller, or refuses it if the caller owes something.
// What is refused costs nothing, so that whoever owes is let in when it was told to come.
func (c Caller) Metered(ctx context.Context) error {
	err := c.Charge(0)
	if err == nil {
		ChargeTo(ctx, c.account())
	} else {
		ChargeTo(ctx, limits.Account{}) // and not to the address
	}
	return err
}

// Wrote charges for bytes that were not written to a metered http.ResponseWriter.
func Wrote(ctx context.Context, n int) {
	if m := meterOf(ctx); m != nil {
		m.wrote(n)
	}
}

func (m *meter) wrote(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leave() // the client may take the answer slowly
	if !m.known {
		m.written += n
		return
	}
	m.account.Spend(limits.BytesOut, float64(n))
}

// leave gives the slot of a large request to others; under mu.
func (m *meter) leave() {
	if m.slot != nil {
		m.slot.Release()
	}
	m.slot = nil
}

// leaveSlot gives the slot to others before the broker is asked, which has slots of its own.
func leaveSlot(ctx context.Context) {
	if m := meterOf(ctx); m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.leave()
	}
}

// room refuses a call whose answer there is no room for. What a call has done is not refused.
func room(ctx context.Context) error {
	m := meterOf(ctx)
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.account.Hold(limits.Buffered, 0)
	return err
}

// keep holds an answer until the request, or the page, is over.
func keep(ctx context.Context, answer []byte) {
	m := meterOf(ctx)
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.stream {
		m.held = append(m.held, m.account.Keep(limits.Buffered, float64(len(answer))))
	}
}

// Page is a context for a page of a stream, which is sent at end. Of any other request it is the same.
func Page(ctx context.Context) (page context.Context, end func()) {
	m := meterOf(ctx)
	if m == nil {
		return ctx, func() {}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.stream {
		return ctx, func() {}
	}
	of := &meter{account: m.account, known: true}
	return context.WithValue(ctx, meterKey{}, of), of.end
}

// end releases what is held.
func (m *meter) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leave()
	for _, release := range m.held {
		release()
	}
	m.held = nil
}

// EnterStream counts a stream of the caller until leave, or refuses it. From now on, answers of the
// broker are held a page at a time.
func (c Caller) EnterStream(ctx context.Context) (leave func(), err error) {
	if m := meterOf(ctx); m != nil {
		m.end()
		m.mu.Lock()
		m.stream = true
		m.mu.Unlock()
	}
	return c.EnterWait()
}

// EnterWait counts a request that may wait for long as a stream until leave, or refuses it.
func (c Caller) EnterWait() (leave func(), err error) { return c.account().Hold(limits.Streams, 1) }

// Buffer holds bytes that are buffered for the caller until release, or refuses them.
func (c Caller) Buffer(n int) (release func(), err error) {
	return c.account().Hold(limits.Buffered, float64(n))
}

func (c Caller) account() limits.Account {
	if c.service == nil {
		return limits.Account{}
	}
	return c.service.Accounts.Of(c.Agent)
}
