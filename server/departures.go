package server

import (
	"errors"
	"io/fs"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/embedded"
	"github.com/parley-asp/parley/login"
	"github.com/parley-asp/parley/performatives"
)

// A login that was under way when its key was taken away may have been let in just before,
// and becomes a connection just after. So connections are looked for again.
const lookAgain = 2 * time.Second

// departures closes the connections of keys that are their principals' no more, and those of
// nodes that have fallen silent.
type departures struct {
	disconnect func(user string) error
	log        *zap.Logger
	ended      chan struct{}
}

// left closes what the key is connected with, at once and when logins under way have ended.
func (d departures) left(a performatives.Agent, k performatives.Key) {
	user := login.Identity{Name: a.Token(), Role: login.Principal}.User(string(k))
	d.log.Info("a key was taken away", zap.String("user", user))
	d.close(user)
	again := time.NewTimer(lookAgain)
	go func() {
		defer again.Stop()
		select {
		case <-again.C:
			d.close(user)
		case <-d.ended:
		}
	}()
}

func (d departures) close(user string) {
	if err := d.disconnect(user); err != nil {
		d.log.Error("connections of a key that was taken away are not closed", zap.String("user", user), zap.Error(err))
	}
}

// openDepartures finds the way to disconnect: in the embedded server a call, in one elsewhere
// the system account.
func (n *Node) openDepartures(o Options) (departed func(performatives.Agent, performatives.Key), silent func(node string), err error) {
	if !n.mode.servesLogins() {
		return nil, nil, nil
	}
	d := departures{log: o.Log, ended: n.ended}
	if n.server != nil {
		d.disconnect = n.server.Disconnect
		return d.left, nil, nil
	}
	nc, err := n.login(o, login.SystemAccount, n.keys.system, n.named(systemName), nats.CustomInboxPrefix(embedded.SystemInbox))
	if errors.Is(err, ErrNotLetIn) || errors.Is(err, fs.ErrNotExist) {
		o.Log.Warn("the NATS server does not know the node's system key: who is removed stays connected, and is refused at the next login")
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	k, err := openKicks(nc, o.Log)
	if err != nil {
		return nil, nil, err
	}
	public, err := n.keys.public()
	if err != nil {
		return nil, nil, err
	}
	d.disconnect = k.user
	return d.left, func(node string) {
		for _, user := range []string{public.Broker, public.Callout} {
			if err := k.node(user, node); err != nil {
				o.Log.Error("connections of a silent broker are not closed", zap.String("broker", node), zap.Error(err))
			}
		}
	}, nil
}
