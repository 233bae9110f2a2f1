package server

import (
	"errors"
	"io"
	"net"
	"testing"
)

// A listener that is strict closes connections over the bound at once, and goes on.
func TestListenStrictly(t *testing.T) {
	t.Parallel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	l := newAddresses(1, nil).listenStrictly(inner)
	defer l.Close()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", inner.Addr().String())
		must(err)
		return conn
	}
	first := dial()
	defer first.Close()
	accepted, err := l.Accept()
	must(err)
	second := dial()
	defer second.Close()
	next := make(chan net.Conn)
	go func() {
		conn, _ := l.Accept()
		next <- conn
	}()
	if _, err := second.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a connection over the bound reads %v", err)
	}
	must(accepted.Close())
	third := dial()
	defer third.Close()
	conn := <-next
	if conn == nil || conn.RemoteAddr().String() != third.LocalAddr().String() {
		t.Fatal("no connection is accepted after one has closed")
	}
	must(conn.Close())
}
