package httpgateway

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"golang.org/x/time/rate"

	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/session"
)

const (
	subprotocol   = "asp.v0.1"
	authWithin    = 10 * time.Second
	heartbeatWait = 30 * time.Second
	missedPongs   = 2       // heartbeats without an answer
	maxAuthFrame  = 4 << 10 // bytes, of who is not known yet
	maxEarly      = 4       // pings and pongs, of who is not known yet
)

// A closing is why a WebSocket is closed.
type closing struct {
	code websocket.StatusCode
	why  string
}

func (c closing) Error() string { return c.why }

var (
	errAuth     = closing{4001, "the token is missing, wrong, expired or removed"}
	errNoAuth   = closing{4001, "the first frame is auth, within 10 s"}
	errNoPart   = closing{4003, "there is no such session, or you have no part in it"}
	errTooLarge = closing{4008, "the frame is too large"}
	errLimited  = closing{4008, "rate limited"}
	errSilent   = closing{4008, "two heartbeats had no pong"}
	errOver     = closing{4009, "the session is over"}
	errEnding   = closing{websocket.StatusGoingAway, "the broker shuts down"}
	errBusy     = closing{websocket.StatusTryAgainLater, "the broker cannot answer now"}
)

// A socket is an open WebSocket. Its main goroutine writes all frames and reads entries as
// an SSE stream does; another one receives frames, one at a time.
type socket struct {
	c      *call
	conn   *websocket.Conn
	frames chan incoming // closed when no frame comes any more
	reader *sessionReader
	taken  *hijacker
	done   chan struct{}                  // closed when frames are taken no more
	payer  atomic.Pointer[gateway.Caller] // nil before it is authenticated
	early  int                            // pings and pongs before that
	free   *rate.Limiter                  // of frames
}

// An incoming frame.
type incoming struct {
	data     []byte
	tooLarge bool
	limited  bool // it is a ping or a pong for which nobody pays
}

// socket serves a session as a WebSocket.
func (c *call) socket() {
	if err := c.upgradable(); err != nil {
		c.refuse(err)
		return
	}
	s := &socket{c: c, frames: make(chan incoming), reader: &sessionReader{c: c}, taken: &hijacker{ResponseWriter: c.w}, done: make(chan struct{}), free: rate.NewLimiter(freeFrames, freeAtOnce)}
	// upgradable has checked the origin, with the answer of other requests.
	conn, err := websocket.Accept(s.taken, c.r, &websocket.AcceptOptions{
		Subprotocols: []string{subprotocol}, InsecureSkipVerify: true,
		OnPingReceived: func(ctx context.Context, _ []byte) bool { return s.pays(ctx) },
		OnPongReceived: func(ctx context.Context, _ []byte) { s.pays(ctx) },
	})
	if err != nil {
		return // it has answered
	}
	c.g.open.Add(1)
	defer c.g.open.Done()
	defer conn.CloseNow()             //nolint:errcheck // it is closed already, unless the client is gone
	conn.SetReadLimit(-1)             // receive bounds frames, with close codes of our own
	c.r.Header.Del("Idempotency-Key") // is for one act; a frame has its messageId
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	s.conn = conn
	go s.receive(ctx)
	end, is := errors.AsType[closing](s.serve(ctx))
	close(s.done)
	s.taken.conn.ends()
	if is {
		conn.Close(end.code, end.why) //nolint:errcheck // the client is gone
	}
}

// upgradable refuses what is no handshake of a WebSocket, or of a page that may not call.
func (c *call) upgradable() error {
	h := c.r.Header
	refuse := func(code int, text string) error {
		return status{session.Refuse(session.MalformedEnvelope, "%s", text), code}
	}
	offered := strings.FieldsFunc(strings.Join(h.Values("Sec-WebSocket-Protocol"), ","), func(r rune) bool { return r == ',' || r == ' ' })
	switch origin, err := url.Parse(h.Get("Origin")); {
	case c.r.Method != http.MethodGet || c.r.ProtoMajor != 1 || !strings.EqualFold(h.Get("Upgrade"), "websocket") || !strings.Contains(strings.ToLower(h.Get("Connection")), "upgrade"):
		c.w.Header().Set("Upgrade", "websocket")
		return refuse(http.StatusUpgradeRequired, "the path takes a WebSocket handshake over HTTP/1.1")
	case h.Get("Sec-WebSocket-Version") != "13":
		c.w.Header().Set("Sec-WebSocket-Version", "13")
		return refuse(http.StatusBadRequest, "Sec-WebSocket-Version is 13")
	case !nonce(h.Values("Sec-WebSocket-Key")):
		return refuse(http.StatusBadRequest, "Sec-WebSocket-Key is the Base64 of 16 bytes")
	case len(offered) > 0 && !slices.Contains(offered, subprotocol):
		return refuse(http.StatusBadRequest, "the subprotocol is "+subprotocol)
	case h.Get("Origin") != "" && (err != nil || !strings.EqualFold(origin.Host, c.r.Host)) && !slices.Contains(c.g.origins, h.Get("Origin")):
		return session.Refuse(session.Unauthorized, "pages of this origin may not call")
	}
	return nil
}

func nonce(given []string) bool {
	if len(given) != 1 {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(given[0])
	return err == nil && len(key) == 16
}

// receive reads frames until the client is gone or sends one that is too large.
func (s *socket) receive(ctx context.Context) {
	defer close(s.frames)
	for limit := int64(maxAuthFrame); ; limit = gateway.MaxBody {
		s.taken.conn.begins()
		_, r, err := s.conn.Reader(ctx)
		if err != nil {
			return
		}
		data, err := io.ReadAll(io.LimitReader(r, limit+1))
		if err != nil {
			return
		}
		in := incoming{data: data, tooLarge: int64(len(data)) > limit}
		select {
		case s.frames <- in:
		case <-ctx.Done():
			return
		}
		if in.tooLarge {
			return
		}
	}
}

// serve serves the socket until there is a reason to close it.
func (s *socket) serve(ctx context.Context) error {
	if err := s.authenticate(ctx); err != nil {
		return err
	}
	leave, err := s.c.EnterStream(ctx)
	if err != nil {
		return s.closing(err)
	}
	defer leave()
	ctx, cancel := s.c.Until(s.c.r.Context())
	defer cancel()
	view, err := s.c.View(ctx, s.c.session())
	if err != nil {
		return s.closing(err)
	}
	changed, stop, over, err := s.reader.open(ctx)
	if err != nil {
		return s.closing(err)
	}
	defer stop()
	if err := s.write(greeting{"auth_ok", string(view.Session), view.State.String(), view.Participants, view.Head.Sequence}); err != nil {
		return s.closing(err)
	}
	heartbeat := time.NewTicker(heartbeatWait)
	defer heartbeat.Stop()
	unanswered := 0
	for !over {
		if over, err = s.reader.read(ctx, s.entry); ctx.Err() != nil {
			return errAuth
		} else if err != nil {
			return s.closing(err)
		}
		for quiet := !over; quiet; {
			select {
			case <-changed:
				quiet = false
			case in, open := <-s.frames:
				if !open {
					return io.EOF
				}
				pong, err := s.take(ctx, in)
				if err != nil {
					return err
				}
				if pong {
					s.c.g.service.Seen(s.c.Agent)
					unanswered = 0
				}
			case now := <-heartbeat.C:
				if unanswered == missedPongs {
					return errSilent
				}
				unanswered++
				if err := s.write(beat{"heartbeat", now.UTC().Format(time.RFC3339Nano), s.reader.state}); err != nil {
					return err
				}
			case <-ctx.Done():
				return errAuth // the token has expired, or was removed
			case <-s.c.g.ending:
				return errEnding
			}
		}
	}
	return errOver
}

// closing is how a socket ends that cannot go on because of err.
func (s *socket) closing(err error) error {
	refusal, is := errors.AsType[*session.Refusal](err)
	switch {
	case !is:
		return err
	case refusal == custody.ErrToken:
		return errAuth
	case refusal.Code == session.RateLimited:
		return errLimited
	case refusal.Code == session.Unavailable:
		return errBusy
	}
	return errNoPart
}

// authenticate takes the first frame.
func (s *socket) authenticate(ctx context.Context) error {
	late := time.NewTimer(authWithin)
	defer late.Stop()
	var in incoming
	var open bool
	select {
	case in, open = <-s.frames:
	case <-late.C:
		return errNoAuth
	case <-s.c.g.ending:
		return errEnding
	}
	var auth struct {
		Type  string `json:"type"`
		Token string `json:"token"`
		Last  *int64 `json:"lastSequence,omitzero"` // -1 before the first entry
	}
	switch {
	case !open:
		return io.EOF
	case in.tooLarge:
		return errTooLarge
	case in.limited || decode(in.data, &auth) != nil || auth.Type != "auth" || auth.Last != nil && *auth.Last < -1:
		return errNoAuth
	}
	var err error
	if s.c.Caller, err = s.c.g.service.Admit(ctx, auth.Token); err != nil {
		return s.closing(err)
	}
	s.payer.Store(&s.c.Caller)
	if auth.Last != nil {
		s.reader.from, s.reader.seen = uint64(max(0, min(*auth.Last, 1<<53-2)+1)), true
	}
	return nil
}

// entry writes an entry, after the state that it brings about.
func (s *socket) entry(changed *stateChange, e gateway.Entry) error {
	if changed != nil {
		if err := s.write(stateFrame{"session_state", *changed}); err != nil {
			return err
		}
	}
	return s.write(entryFrame{"message", e.JSON})
}

// write sends a frame to a client that takes it in time. A token that ends meanwhile does not end the
// write: the client is still to be told why.
func (s *socket) write(frame any) error {
	data, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.c.r.Context(), gateway.WriteWithin)
	defer cancel()
	gateway.Wrote(ctx, len(data))
	return s.conn.Write(ctx, websocket.MessageText, data)
}
