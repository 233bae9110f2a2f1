package server_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/testkit"
)

// A broker does not start on a NATS server that is too old for it, and says which it needs.
func TestOldServer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go oldServer(conn)
		}
	}()
	_, err = server.Start(t.Context(), server.Options{Data: t.TempDir(), NATS: "nats://" + listener.Addr().String()})
	if !errors.Is(err, store.ErrServerTooOld) {
		t.Errorf("on nats-server 2.11.9 the broker says %v", err)
	}
}

// oldServer lets a client in, as nats-server 2.11 does, and answers its pings.
func oldServer(conn net.Conn) {
	defer conn.Close()
	io.WriteString(conn, `INFO {"server_id":"OLD","version":"2.11.9","headers":true,"max_payload":1048576,"jetstream":true,"nonce":"AAAAAAAAAAAAAAA"}`+"\r\n") //nolint:errcheck // the client went away
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if lines.Text() == "PING" {
			io.WriteString(conn, "PONG\r\n") //nolint:errcheck // the client went away
		}
	}
}
