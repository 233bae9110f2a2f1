package server_test

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// A broker logs in again to a NATS server that took too long the first time: it is not taken for
// one that refuses the broker's keys.
func TestFirstLoginIsTooSlow(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	config, err := server.Config(data, testkit.Shards)
	testkit.Must(t, err)
	address := testkit.StartServerProcess(t, config).Address
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	go forwards(t, l, address)
	t.Cleanup(func() { l.Close() })
	s, err := server.Start(t.Context(), server.Options{Data: data, NATS: "nats://" + l.Addr().String()})
	testkit.Must(t, err)
	testkit.Must(t, s.Close(context.WithoutCancel(t.Context())))
}

// forwards joins each connection to an address, but for the first, on which it says nothing.
func forwards(t *testing.T, l net.Listener, address string) {
	for first := true; ; first = false {
		near, err := l.Accept()
		if err != nil {
			return
		}
		t.Cleanup(func() { near.Close() })
		if first {
			continue
		}
		far, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		for to, from := range map[net.Conn]net.Conn{near: far, far: near} {
			go func() {
				io.Copy(to, from) //nolint:errcheck // it ends with either connection
				to.Close()
			}()
		}
	}
}
