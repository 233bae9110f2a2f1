package bench

import (
	"bytes"
	"fmt"
	"net"
	"runtime/pprof"
	"strconv"
	"testing"

	"github.com/parley-asp/parley/test/testkit"
)

// BenchmarkMCPWait is what a broker keeps of a client of MCP that waits for a turn, each for a
// principal of its own: the memory and the goroutines of this process. The clients are in
// another one.
func BenchmarkMCPWait(b *testing.B) {
	w := testkit.NewWorld(b, testkit.Options{Dev: true, HTTP: "127.0.0.1:0", HTTPConnections: -1})
	memory, goroutines := inUse()
	resident := residentMemory(b)
	leave := connects(b, "-hold-mcp="+w.HTTPAddr, "-clients="+strconv.Itoa(*clients))
	testkit.Eventually(b, "all clients wait", func() bool { return waiting(b) >= *clients })
	for b.Loop() {
		more, then := inUse()
		each := float64(*clients)
		b.ReportMetric((more-memory)/each, "B/client")
		b.ReportMetric((residentMemory(b)-resident)/each, "resident-B/client")
		b.ReportMetric(float64(then-goroutines)/each, "goroutines/client")
	}
	leave()
}

// waiting is how many goroutines of this process wait for a turn.
func waiting(b *testing.B) (n int) {
	b.Helper()
	var profile bytes.Buffer
	testkit.Must(b, pprof.Lookup("goroutine").WriteTo(&profile, 1))
	_, stacks, _ := bytes.Cut(profile.Bytes(), []byte("\n")) // after the total
	for stack := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		count, _, _ := bytes.Cut(stack, []byte(" "))
		if same, err := strconv.Atoi(string(count)); err == nil && bytes.Contains(stack, []byte("turns.(*Turns).Wait+")) {
			n += same
		}
	}
	return n
}

// waitByMCP calls wait_for_turn, which is answered after 50 seconds.
func waitByMCP(address string, i int) (net.Conn, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait_for_turn","arguments":{}}}`
	_, err = fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer agent://acme.com/cron-%d\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s", address, i, len(call), call)
	return c, err
}
