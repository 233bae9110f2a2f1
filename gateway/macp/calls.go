package macpgateway

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

type arrival struct{}

// arriving cancels a call whose request has not arrived in time. gRPC reads the request of a
// unary call before anything else can bound its time.
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

// streaming answers INTERNAL if a stream panics.
func (g *Gateway) streaming(service any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = g.panicked(info.FullMethod, r)
			s.SetTrailer(trailer(internalError))
		}
	}()
	return next(service, s)
}

func trailer(c code) metadata.MD { return metadata.Pairs("macp-error-code", string(c)) }

// panicked logs a panic. What the runtime says tells no secret; another value may.
func (g *Gateway) panicked(method string, r any) error {
	why := fmt.Sprintf("%T", r)
	if fault, is := r.(runtime.Error); is {
		why = fault.Error()
	}
	g.o.Log.Error("macp: a call panicked", zap.String("method", method), zap.String("panic", why), zap.Stack("stack"))
	return status.Error(codes.Internal, string(internalError)+": the broker failed")
}
