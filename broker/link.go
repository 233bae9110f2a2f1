package broker

import (
	"context"
	"errors"
	"sync"

	"github.com/nats-io/nats.go"
)

// A link is the connection to the server for as long as it holds. What was
// asked over one that broke is never answered: nobody has to wait for it.
type link struct {
	mu     sync.Mutex
	holds  context.Context //nolint:containedctx // it is the thing itself: what it breaks ends
	breaks context.CancelCauseFunc
}

var errLinkBroke = errors.New("the connection to the NATS server broke")

func (b *Broker) openLink(context.Context) error {
	l := &link{}
	l.renew()
	b.link = l
	changes := b.Conn.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	b.background(func(ctx context.Context) {
		defer b.Conn.RemoveStatusListener(changes)
		for {
			select {
			case <-ctx.Done():
				return
			case <-changes:
				l.renew()
			}
		}
	})
	return nil
}

// renew ends what went over the link before.
func (l *link) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.breaks != nil {
		l.breaks(errLinkBroke)
	}
	l.holds, l.breaks = context.WithCancelCause(context.Background())
}

// broken is closed when the link as it is now breaks.
func (l *link) broken() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holds.Done()
}

// during bounds a request by the link that it goes over.
func (l *link) during(ctx context.Context) (context.Context, func()) {
	l.mu.Lock()
	holds := l.holds
	l.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(holds, cancel)
	return ctx, func() { stop(); cancel() }
}
