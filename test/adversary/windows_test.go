package adversary

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"testing"

	"golang.org/x/net/http2"

	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/test/testkit"
)

// TestClosedWindow: one HTTP/2 connection asks for much of the public log, and takes nothing of it. The
// log is there for others, its checkpoint for everybody, and the requests end.
func TestClosedWindow(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{HTTP: "127.0.0.1:0", HTTPProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	const evil, innocent, requests = "192.0.2.1", "192.0.2.2", 60
	get := func(from, path string) (status int, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), longest)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.HTTPAddr+path, http.NoBody)
		testkit.Must(t, err)
		r.Header.Set("X-Forwarded-For", from)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
	const leaves = 200 // of which a tile has more bytes than a buffer
	for n := range leaves {
		id := testkit.NewSession()
		leaf, err := inclusion.Leaf{Type: inclusion.Session, Hash: fmt.Sprintf("sha256:%07d", n), At: "2026-03-07T14:30:00.000000000Z"}.Bytes()
		testkit.Must(t, err)
		testkit.Must(t, b.Broker.Parts.Ledger.Append(t.Context(), inclusion.Session, string(id), id, leaf))
	}
	tile := fmt.Sprintf("/log/tile/entries/000.p/%d", leaves)
	testkit.Eventually(t, "the log has them", func() bool {
		status, err := get(innocent, tile)
		return err == nil && status == http.StatusOK
	})
	conn, err := net.Dial("tcp", b.HTTPAddr)
	testkit.Must(t, err)
	defer conn.Close()
	attack := testkit.NewHTTP2(t, conn, 0)
	for range requests {
		attack.Get(tile, "x-forwarded-for", evil)
	}
	begun, ended := map[uint32]bool{}, 0 // requests that are answered, and wait for their window
	for ended < requests {
		frame, err := attack.Next()
		testkit.Must(t, err)
		switch frame.(type) {
		case *http2.HeadersFrame:
			if begun[frame.Header().StreamID] = true; len(begun) < requests {
				continue
			}
			for _, from := range []string{innocent, evil} {
				if status, err := get(from, "/log/checkpoint"); status != http.StatusOK {
					t.Errorf("the checkpoint is answered %d, %v to %s", status, err, from)
				}
			}
			if status, err := get(innocent, tile); status != http.StatusOK {
				t.Errorf("a tile is answered %d, %v", status, err)
			}
		case *http2.RSTStreamFrame:
			if !begun[frame.Header().StreamID] {
				t.Fatal("a request ends that was not answered")
			}
			ended++
		}
	}
}
