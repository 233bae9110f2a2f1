package adversary

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// A middle stands between a client and the server and changes what passes, here words into
// others of the same length.
type middle struct {
	server string
	mu     sync.Mutex
	words  map[string]string
	passed bytes.Buffer
}

// between listens; clients that mean the server come to the address that it returns.
func between(t *testing.T, url string) (*middle, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	m := &middle{server: url[strings.Index(url, "://")+3:], words: map[string]string{}}
	var open sync.WaitGroup
	t.Cleanup(open.Wait)
	t.Cleanup(func() { listener.Close() })
	open.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", m.server)
			if err != nil {
				client.Close()
				return
			}
			t.Cleanup(func() { client.Close(); server.Close() })
			open.Go(func() { m.pass(client, server) })
			open.Go(func() { m.pass(server, client) })
		}
	})
	return m, listener.Addr().String()
}

func (m *middle) pass(to io.WriteCloser, from io.Reader) {
	defer to.Close()
	buffer := make([]byte, 1<<20)
	for {
		n, err := from.Read(buffer)
		m.mu.Lock()
		m.passed.Write(buffer[:n])
		data := buffer[:n]
		for old, other := range m.words {
			data = bytes.ReplaceAll(data, []byte(old), []byte(other))
		}
		m.mu.Unlock()
		if _, writeErr := to.Write(data); err != nil || writeErr != nil {
			return
		}
	}
}

func (m *middle) replaces(old, other string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.words[old] = other
}

// TestManInTheMiddle: without TLS somebody on the way can read and change, and is found out.
func TestManInTheMiddle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, address := between(t, w.URL)
	victim := &testkit.Principal{TB: t, Agent: alpha, Key: w.Principal(alpha).Key, Signer: w.Principal(alpha).Signer, URL: "nats://" + address}
	victim.Conn()
	w.harmless(func() {
		m.replaces("one thousand", "two thousand")
		want(t, "another price on the way", victim.Submit(w.deal, victim.Envelope(w.deal, testkit.Fact("one thousand"))), session.SignatureInvalid)
		m.replaces(`"ACCEPT"`, `"REJECT"`)
		want(t, "another act on the way", victim.Submit(w.deal, victim.Envelope(w.deal, &performatives.AcceptBody{ReferenceID: "p1"})), session.SignatureInvalid)
	})
	// What comes back can be changed too; what is verified shows it.
	m.replaces(`"price":15000`, `"price":95000`)
	faults := w.faults(entriesFor(victim, w.deal), transcript.Expect{Session: w.deal})
	if len(faults) == 0 || faults[0].Rule != transcript.Hash {
		t.Errorf("what was changed on the way back is not found: %v", faults)
	}
}

// TestManInTheMiddleOfTLS: nobody on the way reads, changes or pretends to be the server.
func TestManInTheMiddleOfTLS(t *testing.T) {
	t.Parallel()
	ours, theirs := testkit.NewAuthority(t), testkit.NewAuthority(t)
	start := func(by *testkit.Authority) *server.Server {
		var o server.TLS
		o.Cert, o.Key = by.Issue("server")
		n, err := server.Start(t.Context(), server.Options{Data: t.TempDir(), Listen: "127.0.0.1:-1", TLS: o})
		testkit.Must(t, err)
		t.Cleanup(func() { testkit.Must(t, n.Close(t.Context())) })
		return n
	}
	genuine, other := start(ours), start(theirs)
	operator, err := performatives.NewSigner(genuine.Operator())
	testkit.Must(t, err)
	trusts := server.TLS{CA: ours.File}
	login := nats.Nkey(string(operator.Key()), genuine.Operator().Sign)

	m, address := between(t, genuine.URL)
	o, err := client.ConnectOperator(t.Context(), "tls://"+address, client.Login(operator), client.NATS(trusts.Client("tls://"+address)...))
	testkit.Must(t, err)
	defer o.Close()
	if _, err := o.Broker(t.Context()); err != nil {
		t.Error(err)
	}
	m.mu.Lock()
	seen := m.passed.String()
	m.mu.Unlock()
	for _, secret := range []string{api.OperatorCall(api.BrokerInfo.Name), string(operator.Key()), string(genuine.Broker.Command.Key())} {
		if strings.Contains(seen, secret) {
			t.Errorf("somebody on the way reads %s", secret)
		}
	}
	for name, url := range map[string]string{"another server": other.URL, "no TLS": strings.Replace(genuine.URL, "tls://", "nats://", 1)} {
		options := []nats.Option{login, nats.NoReconnect(), nats.Timeout(testkit.Patience)}
		if name == "another server" {
			options = append(options, trusts.Client(url)...)
		}
		if nc, err := nats.Connect(url, options...); err == nil || errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				nc.Close()
			}
		}
	}
}
