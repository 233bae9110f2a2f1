package server_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// What cannot be listened on or connected to is told before anything is bound, and all of it at once.
func TestCheck(t *testing.T) {
	t.Parallel()
	good := server.Options{Listen: "127.0.0.1:4222", HTTP: "127.0.0.1:8080"}
	for name, c := range map[string]struct {
		change func(*server.Options)
		want   error
	}{
		"as it is":           {func(*server.Options) {}, nil},
		"any port twice":     {func(o *server.Options) { o.HTTP, o.Monitor, o.Listen = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:-1" }, nil},
		"two addresses":      {func(o *server.Options) { o.Monitor = "127.0.0.2:8080" }, nil},
		"one address":        {func(o *server.Options) { o.Monitor = o.HTTP }, server.ErrSharedAddress},
		"all addresses":      {func(o *server.Options) { o.MACP = ":4222" }, server.ErrSharedAddress},
		"of IPv6":            {func(o *server.Options) { o.MACP, o.Monitor = "[::1]:1", "[0:0:0:0:0:0:0:1]:1" }, server.ErrSharedAddress},
		"by name":            {func(o *server.Options) { o.Websocket = "localhost:8080" }, server.ErrSharedAddress},
		"of no NATS server":  {func(o *server.Options) { o.NATS, o.HTTP = "nats.example.com", o.Listen }, nil},
		"several servers":    {func(o *server.Options) { o.NATS = "tls://a.example, nats://b.example:4222" }, nil},
		"another scheme":     {func(o *server.Options) { o.NATS = "http://x" }, server.ErrNATSURL},
		"the second of them": {func(o *server.Options) { o.NATS = "nats://a.example,https://b.example" }, server.ErrNATSURL},
		"two faults":         {func(o *server.Options) { o.Shards, o.HTTP = 99, o.Listen }, server.ErrShardCount},
	} {
		o := good
		c.change(&o)
		err := o.Check()
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if _, is := errors.AsType[*server.Fault](err); err != nil && !is {
			t.Errorf("%s: %v names no flag", name, err)
		}
	}
}

// TestNothingLeft: a start that fails for what can be known before makes no keys.
func TestNothingLeft(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer taken.Close()
	for name, o := range map[string]server.Options{
		"--http":     {Listen: "127.0.0.1:-1", HTTP: taken.Addr().String()},
		"--listen":   {Listen: taken.Addr().String()},
		"--tls-cert": {Listen: "127.0.0.1:-1", TLS: server.TLS{Cert: "none.pem", Key: "none.key"}},
	} {
		o.Data = filepath.Join(t.TempDir(), "new")
		if s, err := server.Start(t.Context(), o); err == nil {
			t.Errorf("%s: it starts", name)
			testkit.Must(t, s.Close(context.WithoutCancel(t.Context())))
		} else if _, missing := os.Stat(o.Data); missing == nil {
			t.Errorf("%s: %v, and %s is there", name, err, o.Data)
		}
	}
}
