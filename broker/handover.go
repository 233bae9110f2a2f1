package broker

import (
	"time"

	"go.uber.org/zap"
)

const (
	// handOverAfter is how long a broker tries to apply side effects alone.
	handOverAfter = 10 * time.Second

	// maxRetryPause is short, so that what a new leader takes is stored soon after it was elected.
	maxRetryPause = time.Second
)

// fails notes that the side effects of a session could not be applied at a time. A broker that cannot
// apply them for too long, perhaps because of the server that it is connected to, asks its peers.
func (b *Broker) fails(l *cachedSession, begun time.Time, why error) {
	if l.failing.IsZero() {
		l.failing = begun
		b.o.Log.Warn("side effects are retried", zap.String("session", string(l.id)), zap.Error(why))
	}
	b.o.Metrics.Stuck(string(l.id), l.failing)
	if l.handedOver || len(l.unapplied) == 0 || time.Since(l.failing) < handOverAfter {
		return
	}
	l.handedOver = true
	b.o.Metrics.HandedOver()
	b.parts.Members.HandOver(l.id, l.unapplied[0].position-1)
	b.o.Log.Error("side effects cannot be applied here; peers are asked to", zap.String("session", string(l.id)),
		zap.Int("attempts", l.attempts), zap.Error(why))
}

// recovered notes that the side effects of a session are applied, here or by a peer.
func (b *Broker) recovered(l *cachedSession) {
	if l.handedOver {
		b.parts.Members.TakeBack(l.id)
		b.o.Log.Info("side effects are applied after all", zap.String("session", string(l.id)), zap.Duration("after", time.Since(l.failing)))
	}
	l.failing, l.handedOver = time.Time{}, false
	b.o.Metrics.Unstuck(string(l.id))
}
