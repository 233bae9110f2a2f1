package embedded_test

import (
	"net"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/server/login"
	"github.com/parley-asp/parley/test/natskit"
)

// A client that takes nothing any more is cut off before what waits for it fills the memory. Others stay.
func TestUnread(t *testing.T) {
	w := start(t, false)
	w.echo("asp.agent." + bob + ".api.*.*")
	answer := make([]byte, 900<<10)
	_, err := w.broker.Subscribe("asp.agent."+alice+".api.*.*", func(m *nats.Msg) {
		_ = m.Respond(answer) // the test may be over
	})
	natskit.Must(t, err)
	natskit.Must(t, w.broker.Flush())
	other := w.as(bob)

	deaf := make(chan struct{})
	slow := w.connect(natskit.Bare(t, w.keys[alice]), nats.SetCustomDialer(dialer(func(network, address string) (net.Conn, error) {
		c, err := net.Dial(network, address)
		return &stopsReading{c, deaf, make(chan struct{})}, err
	})), nats.NoReconnect())
	_, err = slow.SubscribeSync("_INBOX." + alice + ".x")
	natskit.Must(t, err)
	natskit.Must(t, slow.Flush())
	user := login.Identity{Name: alice, Role: login.Principal}.User(natskit.Public(t, w.keys[alice]))
	if n, err := w.server.Connections(user); n != 1 || err != nil {
		t.Fatalf("%s has %d connections: %v", user, n, err)
	}
	close(deaf)
	for range 40 { // the kernel takes some
		natskit.Must(t, slow.PublishRequest("asp.agent."+alice+".api.session.get", "_INBOX."+alice+".x", nil))
	}
	natskit.Eventually(t, "the client that does not read is cut off", func() bool {
		n, err := w.server.Connections(user)
		return err == nil && n == 0 && w.said.FilterMessageSnippet("bytes wait for "+alice).Len() == 1
	})
	w.asks(other, "asp.agent."+bob+".api.session.get")
}

// A client that sends more than anybody needs is cut off, whatever it sends. Others stay.
func TestSentTooMuch(t *testing.T) {
	w := start(t, false)
	w.echo("asp.agent." + bob + ".api.*.*")
	other := w.as(bob)
	flooder := w.connect(natskit.Bare(t, w.keys[alice]), nats.NoReconnect())
	sends := func() error { return flooder.Publish("$JS.ACK.ASP_INBOX."+alice+".1.1.1.1.1.0", nil) }
	for range 1_000 { // as many as it may
		natskit.Must(t, sends())
	}
	natskit.Must(t, flooder.Flush())
	for sends() == nil {
		continue
	}
	if name := <-w.floods; name != alice {
		t.Errorf("%s floods", name)
	}
	w.asks(other, "asp.agent."+bob+".api.session.get")
}

type dialer func(network, address string) (net.Conn, error)

func (d dialer) Dial(network, address string) (net.Conn, error) { return d(network, address) }

// stopsReading reads nothing more once deaf is closed, until it is closed itself.
type stopsReading struct {
	net.Conn
	deaf   <-chan struct{}
	closed chan struct{}
}

func (c *stopsReading) Read(p []byte) (int, error) {
	select {
	case <-c.deaf:
		<-c.closed
		return 0, net.ErrClosed
	default:
		return c.Conn.Read(p)
	}
}

func (c *stopsReading) Close() error {
	close(c.closed)
	return c.Conn.Close()
}
