// Package background runs the goroutines of one part of the program and ends
// them all when the part closes.
//
//	work := background.New()
//	work.Go(func(ctx context.Context) { … until ctx is done … })
//	work.Close()
//
// After Close no goroutine is left.
package background

import (
	"context"
	"sync"
	"time"
)

// A Group is the goroutines of one part.
type Group struct {
	ctx    context.Context //nolint:containedctx // the life of the part, with which its goroutines end
	cancel context.CancelFunc

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// New starts an empty group.
func New() *Group {
	ctx, cancel := context.WithCancel(context.Background())
	return &Group{ctx: ctx, cancel: cancel}
}

// Context is done when the group closes.
func (g *Group) Context() context.Context { return g.ctx }

// Go runs a function in a goroutine of the group; false means that the group
// is closed and the function does not run.
func (g *Group) Go(run func(context.Context)) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.running.Go(func() { run(g.ctx) })
	return true
}

// After runs a function once a delay is over, unless the group closes first.
func (g *Group) After(delay time.Duration, run func(context.Context)) bool {
	return g.Go(func(ctx context.Context) {
		if Pause(ctx, delay) == nil {
			run(ctx)
		}
	})
}

// Close ends the group's context and waits for its goroutines.
func (g *Group) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel()
	g.running.Wait()
}

// Pause waits, unless ctx ends first; then it returns why.
func Pause(ctx context.Context, delay time.Duration) error {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Await waits until a channel is closed, unless ctx ends first.
func Await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
