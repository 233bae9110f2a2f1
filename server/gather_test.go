package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
)

// both are the two ends of a connection, of which one gathers.
func both(t *testing.T) (gathers, other net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if gathers, err = (gather{}).Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if other, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gathers.Close(); other.Close() })
	return gathers, other
}

// TestGathered: all that is written arrives, once, in the order of each who
// writes, also what was written just before the end.
func TestGathered(t *testing.T) {
	t.Parallel()
	gathers, other := both(t)
	const writers, lines = 8, 500
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for n := range lines {
				if _, err := fmt.Fprintf(gathers, "%d %d\n", w, n); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	closed := make(chan error, 1)
	go func() {
		writing.Wait()
		closed <- gathers.Close()
	}()
	all, err := io.ReadAll(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	var next [writers]int
	for line := range bytes.Lines(all) {
		var w, n int
		if _, err := fmt.Sscanf(string(line), "%d %d\n", &w, &n); err != nil || next[w] != n {
			t.Fatalf("%q came, where %d is due: %v", line, next[w], err)
		}
		next[w]++
	}
	for w, n := range next {
		if n != lines {
			t.Errorf("of %d there are %d lines", w, n)
		}
	}
	if _, err := gathers.Write([]byte("more")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// TestGatheredNotRead: whoever writes to a side that does not read waits at some
// time, and no longer than until the connection is closed.
func TestGatheredNotRead(t *testing.T) {
	t.Parallel()
	gathers, _ := both(t)
	var written int
	ended := make(chan error)
	full := make(chan struct{})
	go func() {
		var once sync.Once
		for {
			n, err := gathers.Write(make([]byte, 1<<16))
			if err != nil {
				ended <- err
				return
			}
			if written += n; written >= maxGathered {
				once.Do(func() { close(full) })
			}
		}
	}()
	<-full
	gathers.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("whoever writes hears %v", err)
	}
	if most := 64 << 20; written > most {
		t.Errorf("%d bytes were taken", written)
	}
}

// TestGatheredBroken: that the other side is gone is said to who writes.
func TestGatheredBroken(t *testing.T) {
	t.Parallel()
	gathers, other := both(t)
	if err := other.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := gathers.Read(make([]byte, 1)); err == nil {
		t.Fatal("the other side still speaks")
	}
	for {
		if _, err := gathers.Write([]byte("more")); err != nil {
			return
		}
	}
}
