package macpgateway

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/gateway/macp/pb"
)

type arrival struct{}

// arriving cancels a call whose request has not arrived in time. A handler that reads it cannot.
func arriving(ctx context.Context, _ *tap.Info) (context.Context, error) {
	late, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(arrivalTimeout, cancel)
	context.AfterFunc(ctx, func() { timer.Stop() })
	return context.WithValue(late, arrival{}, timer), nil
}

// arrived ends what arriving began.
func arrived(ctx context.Context) {
	if timer, is := ctx.Value(arrival{}).(*time.Timer); is {
		timer.Stop()
	}
}

// within bounds the time of a unary call, and answers INTERNAL if it panics.
func (g *Gateway) within(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (answer any, err error) {
	arrived(ctx)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			err = g.panicked(info.FullMethod, r)
			grpc.SetTrailer(ctx, trailer(internalError)) //nolint:errcheck // of a call, which has one
		}
	}()
	return next(ctx, request)
}

// register registers a service, its unary calls as streams of one request and one answer, which
// are the same on the wire. gRPC reads the request of a unary call before anything can ask who
// sends it.
func (g *Gateway) register(of grpc.ServiceDesc, service any) {
	of.Streams = slices.Clone(of.Streams)
	for _, m := range of.Methods {
		of.Streams = append(of.Streams, grpc.StreamDesc{StreamName: m.MethodName, Handler: func(service any, s grpc.ServerStream) error {
			answer, err := m.Handler(service, s.Context(), s.RecvMsg, g.within)
			if err != nil {
				return err
			}
			return s.SendMsg(answer)
		}})
	}
	of.Methods = nil
	g.server.RegisterService(&of, service)
}

// streaming finds out who calls before it reads anything, and answers INTERNAL if a stream panics.
func (g *Gateway) streaming(service any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = g.panicked(info.FullMethod, r)
			s.SetTrailer(trailer(internalError))
		}
	}()
	ctx, end := gateway.Metered(s.Context())
	defer end()
	c, err := g.enter(ctx)
	if gateway.Passing(err) {
		return g.status(s.Context(), err)
	}
	if err != nil { // health checks, and Initialize, need no token; the others say what is wrong with it
		return next(service, anonymous{s, g})
	}
	if info.FullMethod != pb.MACPRuntimeService_Send_FullMethodName && info.FullMethod != pb.MACPRuntimeService_StreamSession_FullMethodName { // these go to the broker
		if err := c.Charge(1); err != nil {
			return g.status(s.Context(), err)
		}
	}
	return next(service, authenticated{s, context.WithValue(ctx, callerKey{}, c)})
}

type callerKey struct{}

// authenticated is a call of a caller that is known.
type authenticated struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // the stream's
}

func (a authenticated) Context() context.Context { return a.ctx }

// SendMsg charges for what it sends.
func (a authenticated) SendMsg(m any) error {
	if message, is := m.(proto.Message); is {
		gateway.Wrote(a.ctx, proto.Size(message))
	}
	return a.ServerStream.SendMsg(m)
}

// anonymous is a call without a good token.
type anonymous struct {
	grpc.ServerStream
	g *Gateway
}

// RecvMsg reads a message if few such calls of the connection are being read.
func (a anonymous) RecvMsg(into any) error {
	leave, err := a.g.enterAnonymous(a.Context())
	if err != nil {
		return a.g.status(a.Context(), err)
	}
	defer leave()
	return a.ServerStream.RecvMsg(into)
}

// enterAnonymous counts a call without a good token that is being read, until leave.
func (g *Gateway) enterAnonymous(ctx context.Context) (leave func(), err error) {
	connection := ""
	if p, is := peer.FromContext(ctx); is {
		connection = p.Addr.String()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.anonymous[connection] >= maxAnonymous {
		return nil, problem{rateLimited, "too many calls without a token at a time"}
	}
	g.anonymous[connection]++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.anonymous[connection]--; g.anonymous[connection] == 0 {
			delete(g.anonymous, connection)
		}
	}, nil
}

func trailer(c code) metadata.MD { return metadata.Pairs("macp-error-code", string(c)) }

// panicked logs a panic. What the runtime says tells no secret; another value may.
func (g *Gateway) panicked(method string, r any) error {
	why := fmt.Sprintf("%T", r)
	if fault, is := r.(runtime.Error); is {
		why = fault.Error()
	}
	g.o.Service.Log.Error("macp: a call panicked", zap.String("method", method), zap.String("panic", why), zap.Stack("stack"))
	return status.Error(codes.Internal, string(internalError)+": the broker failed")
}
