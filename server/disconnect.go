package server

import (
	"errors"
	"io/fs"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server/embedded"
	"github.com/parley-asp/parley/server/login"
)

// disconnectAgain is when connections are closed a second time. A login that was
// authorized just before its key was revoked becomes a connection just after.
const disconnectAgain = 2 * time.Second

// revocation disconnects clients whose key was revoked.
type revocation struct {
	disconnect func(user string) error
	log        *zap.Logger
	ended      chan struct{}
}

// revoked closes the connections of a principal's key now, and once more after
// disconnectAgain.
func (r revocation) revoked(a performatives.Agent, k performatives.Key) {
	user := login.Identity{Name: a.Token(), Role: login.Principal}.User(string(k))
	r.log.Info("closing a login's connections: its key was revoked, or its permissions are others now", zap.String("user", user))
	r.close(user)
	again := time.NewTimer(disconnectAgain)
	go func() {
		defer again.Stop()
		select {
		case <-again.C:
			r.close(user)
		case <-r.ended:
		}
	}()
}

func (r revocation) close(user string) {
	if err := r.disconnect(user); err != nil {
		r.log.Error("cannot disconnect a revoked key", zap.String("user", user), zap.Error(err))
	}
}

// openDisconnect returns how to disconnect a revoked key and, on an external
// server, a suspected broker. The embedded server has a call for it; on an
// external one it takes the system account.
func (s *Server) openDisconnect(o Options) (revoked func(performatives.Agent, performatives.Key), suspected func(broker string), err error) {
	if !s.mode.servesLogins() {
		return nil, nil, nil
	}
	r := revocation{log: o.Log, ended: s.ended}
	if s.nats != nil {
		r.disconnect = s.nats.Disconnect
		return r.revoked, nil, nil
	}
	nc, err := s.login(o, login.SystemAccount, s.keys.system, s.named(systemName), nats.CustomInboxPrefix(embedded.SystemInbox))
	if errors.Is(err, ErrNotLetIn) || errors.Is(err, fs.ErrNotExist) {
		o.Log.Warn("the NATS server does not know this broker's system key: a removed principal stays connected, and is refused at its next login")
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	c, err := openConnections(nc, o.Log)
	if err != nil {
		return nil, nil, err
	}
	public, err := s.keys.public()
	if err != nil {
		return nil, nil, err
	}
	r.disconnect = c.closeUser
	return r.revoked, func(broker string) {
		for _, user := range []string{public.Broker, public.Callout} {
			if err := c.closeBroker(user, broker); err != nil {
				o.Log.Error("cannot disconnect a suspected broker", zap.String("peer", broker), zap.Error(err))
			}
		}
	}, nil
}
