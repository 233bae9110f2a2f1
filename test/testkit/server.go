package testkit

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/natskit"
)

// A Server is an embedded NATS server on disk and without logins, for tests of several brokers in one process.
type Server struct {
	*natskit.Server

	t testing.TB
}

// ServerAt is a server without logins that the test has started itself.
func ServerAt(t testing.TB, url string) *Server {
	t.Helper()
	return &Server{natskit.ServerAt(t, url), t}
}

// StartServer starts a server and shuts it down with the test.
func StartServer(t testing.TB) *Server {
	t.Helper()
	return StartSharded(t, Shards)
}

// StartSharded starts one for a store with a number of shards.
func StartSharded(t testing.TB, shards int) *Server {
	t.Helper()
	return &Server{natskit.StartSharded(t, shards), t}
}

// OpenBroker opens a broker on a connection of its own. The test closes it.
func (s *Server) OpenBroker(change ...func(*server.BrokerOptions)) (*server.Broker, *nats.Conn) {
	s.t.Helper()
	nc := s.Connect()
	o := server.BrokerOptions{Options: broker.Options{Signer: s.Signer, Dev: true}, Conn: nc, Shards: Shards}
	for _, c := range change {
		c(&o)
	}
	b, err := server.OpenBroker(s.t.Context(), o)
	Must(s.t, err)
	return b, nc
}

// A ServerProcess is a NATS server of the version in go.mod in a process of its own. It keeps its
// address and its directory when it is started again.
type ServerProcess struct {
	*Process
	Name    string
	Address string // host:port for clients
	Dir     string
	Via     []string // the command that runs it, such as ip netns exec

	t testing.TB
}

// URL is where clients connect.
func (s *ServerProcess) URL() string { return "nats://" + s.Address }

// StartServerProcess starts a server with a configuration on a free port, in a directory of its
// own. Clients can connect when it returns.
func StartServerProcess(t testing.TB, config string) *ServerProcess {
	t.Helper()
	s := NewServerProcess(t, "nats-server", FreeAddress(t), config)
	s.Start()
	return s
}

// NewServerProcess is a server at an address that has not been started.
func NewServerProcess(t testing.TB, name, address, config string) *ServerProcess {
	t.Helper()
	s := &ServerProcess{Name: name, Address: address, Dir: t.TempDir(), t: t}
	own := fmt.Sprintf("server_name: %s\nlisten: %q\n", name, address)
	for file, text := range map[string]string{"server.conf": own + "include ./tested.conf\n", "tested.conf": config} {
		Must(t, os.WriteFile(filepath.Join(s.Dir, file), []byte(text), 0o600))
	}
	return s
}

// Start starts the process, again after Stop or Kill.
func (s *ServerProcess) Start() {
	s.t.Helper()
	Must(s.t, s.start())
}

func (s *ServerProcess) start() (err error) {
	s.Process, _, err = start(s.t, s.Via, "nats-server", s.Dir)
	return err
}

// natsServer does what the nats-server program does until the test is over. It prints a line when
// clients can connect.
func natsServer() error {
	options, err := natsserver.ProcessConfigFile("server.conf")
	if err != nil {
		return err
	}
	s, err := natsserver.NewServer(options)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	s.Start()
	if !s.ReadyForConnections(Patience) {
		return errors.New("the server does not listen")
	}
	fmt.Println("ready")
	go func() {
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // either way the test is over
		s.Shutdown()
	}()
	s.WaitForShutdown()
	return nil
}

// FreeAddress is an address of this machine that nothing listens on now.
func FreeAddress(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", freePorts(t, 1)[0])
}

// freePorts finds ports that nothing listens on now: servers of a cluster have to know each
// other's. They are below those that systems give out by themselves, for listeners on port 0 and
// for connections, or another one could have it before the server listens. No test gets the port
// of one beside it, whose server may not listen yet.
func freePorts(t testing.TB, n int) (ports []int) {
	t.Helper()
	for tries := 0; len(ports) < n; tries++ {
		port := 10_000 + int(nextPort.Add(1)%20_000)
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			if tries > 1000 {
				t.Fatal(err)
			}
			continue
		}
		l.Close()
		ports = append(ports, port)
	}
	return ports
}

// nextPort starts somewhere else in each process: other tests run beside these.
var nextPort = func() *atomic.Uint32 {
	var from atomic.Uint32
	from.Store(rand.Uint32N(20_000))
	return &from
}()
