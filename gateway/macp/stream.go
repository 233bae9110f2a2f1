package macpgateway

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/gateway/macp/pb"
)

// A stream is an open StreamSession.
type stream struct {
	g   *Gateway
	c   caller
	out grpc.BidiStreamingServer[pb.StreamSessionRequest, pb.StreamSessionResponse]

	name       string // what MACP calls the session; "" before the first frame
	subscribed bool   // by subscribe_session_id, not by sending a message
	history    *history
	ordinal    uint64 // of the last message that was read; the first is 1
	after      uint64 // the last one that the client has
	feed       *gateway.Feed
}

// StreamSession serves a session's messages, those after a number first, and takes messages of it.
func (g *Gateway) StreamSession(out grpc.BidiStreamingServer[pb.StreamSessionRequest, pb.StreamSessionResponse]) error {
	ctx := out.Context()
	arrived(ctx)
	c, err := g.enter(ctx)
	if err != nil {
		return g.status(ctx, err)
	}
	leave, err := c.EnterStream(ctx)
	if err != nil {
		return g.status(ctx, err)
	}
	defer leave()
	ctx, cancel := c.Until(ctx)
	defer cancel()
	s := &stream{g: g, c: c, out: out, feed: &gateway.Feed{}}
	defer func() { s.feed.Close() }()
	if err := s.serve(ctx); err != nil {
		return g.status(out.Context(), err)
	}
	return nil
}

// A frame is what came of the client.
type frame struct {
	*pb.StreamSessionRequest
	err error
}

// receive receives frames until the client is done.
func (s *stream) receive(ctx context.Context) <-chan frame {
	frames := make(chan frame)
	go func() {
		defer close(frames)
		for {
			q, err := s.out.Recv()
			select {
			case frames <- frame{q, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return frames
}

func (s *stream) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	frames := s.receive(ctx)
	idle := time.NewTimer(firstFrame)
	defer idle.Stop()
	for {
		select {
		case f := <-frames:
			if errors.Is(f.err, io.EOF) {
				if !s.subscribed {
					return s.read(ctx)
				}
				frames = nil // the client sends no more, and reads on
				break
			}
			if f.err != nil {
				return nil // the client went away
			}
			if err := s.take(ctx, f.StreamSessionRequest); err != nil {
				return err
			}
		case <-s.feed.Changed:
		case <-idle.C:
			if s.name == "" {
				return problem{invalidRequest, "a stream begins with a message, or with subscribe_session_id"}
			}
			continue
		case <-ctx.Done():
			if s.out.Context().Err() == nil {
				return problem{unauthenticated, "the token has expired, or was removed"}
			}
			return nil // the client went away
		case <-s.g.ending:
			return problem{internalError, "the broker stops; resume at another"}
		}
		if err := s.read(ctx); err != nil || s.history != nil && s.history.over {
			return err
		}
	}
}

// take does what a frame asks. What is refused is told in the stream, which goes on.
func (s *stream) take(ctx context.Context, q *pb.StreamSessionRequest) error {
	e, name := q.GetEnvelope(), q.GetSubscribeSessionId()
	if e == nil || name != "" { // it sends nothing, for which the broker would charge
		if err := s.c.Charge(1); err != nil {
			return err
		}
	}
	var offer string
	err := func() error {
		switch {
		case (e == nil) == (name == ""):
			return invalid("a frame has either an envelope or subscribe_session_id")
		case e != nil:
			name = e.GetSessionId()
		}
		if s.name != "" && s.name != name {
			return invalid("a stream is of one session")
		}
		if e == nil {
			err := s.follow(ctx, name, q.GetAfterSequence())
			s.subscribed = s.subscribed || err == nil
			return none(err)
		}
		if s.c.ReadOnly {
			return problem{forbidden, "the token is read-only"}
		}
		if s.history == nil && e.GetMessageType() != start {
			if err := s.follow(ctx, name, ^uint64(0)); err != nil {
				return hidden(err)
			}
		}
		sent, err := s.g.send(ctx, s.c, e)
		offer = sent.offer
		if err == nil && s.history == nil {
			err = s.follow(ctx, name, 0)
		}
		return err
	}()
	if err == nil {
		return nil
	}
	p := s.g.problem(err, offer)
	if own, is := errors.AsType[problem](err); p.code == unauthenticated && (!is || own != notSender) {
		return p
	}
	if e == nil {
		e = &pb.Envelope{SessionId: name}
	}
	return s.out.Send(&pb.StreamSessionResponse{Response: &pb.StreamSessionResponse_Error{Error: p.message(e)}})
}

// follow reads the session from now on. A number beyond the last message is the last one.
func (s *stream) follow(ctx context.Context, name string, after uint64) error {
	id, err := s.g.find(ctx, name)
	if err != nil {
		return err
	}
	h, err := s.g.history(ctx, s.c, id, name)
	if err != nil {
		return err
	}
	feed, err := s.c.Follow(ctx, id, 0)
	if err != nil {
		return err
	}
	s.feed.Close()
	s.feed = feed
	s.name, s.history, s.ordinal, s.after = name, h, 0, after
	if after == 0 {
		return nil
	}
	if err := s.read(ctx); err != nil {
		return err
	}
	s.after = min(after, s.ordinal)
	return nil
}

// read sends what is there.
func (s *stream) read(ctx context.Context) error {
	if s.history == nil {
		return nil
	}
	err := s.history.read(ctx, s.feed, func(e *pb.Envelope) error {
		if s.ordinal++; s.ordinal <= s.after {
			return nil
		}
		return s.out.Send(&pb.StreamSessionResponse{Response: &pb.StreamSessionResponse_Envelope{Envelope: e}})
	})
	if ctx.Err() != nil && gateway.Passing(err) {
		return nil // the client went away
	}
	return err
}
