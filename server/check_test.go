package server_test

import (
	"errors"
	"testing"

	"github.com/parley-asp/parley/server"
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
