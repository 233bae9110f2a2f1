package fault_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/test/testkit"
)

// TestStreamsResume kills the broker that serves streams over HTTP in the middle of a session.
// They resume at another one, and every entry comes once and in order (GATEWAYS.md G2).
func TestStreamsResume(t *testing.T) {
	t.Parallel()
	const acts, buyer, seller = 60, "agent://acme.com/buyer", "agent://widgets.co/seller"
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	at := testkit.StartServerProcess(t, onDisk)
	var brokers []*testkit.BrokerProcess
	var hosts []string
	for range 2 {
		brokers = append(brokers, testkit.StartBrokerProcess(t, testkit.ProcessOptions{
			Data: filepath.Join(at.Dir, "keys"), NATS: at.URL(), HTTP: "127.0.0.1:0", Dev: true,
		}))
		hosts = append(hosts, brokers[len(brokers)-1].HTTPAddr)
	}
	f := follower{t, ctx, hosts}
	var opened api.Acceptance
	f.post("/sessions", buyer, fmt.Sprintf(`{"with":[%q],"purpose":"cups"}`, seller), &opened)
	path := "/sessions/" + string(opened.Session)
	f.post(path+"/messages", seller, `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`, nil)

	half := make(chan struct{}, 3) // each stream, when it has come so far
	received := make([][]int, 3)
	done := make(chan int, 3)
	for i, stream := range []func(seen func(int)){
		func(seen func(int)) { f.events(path+"/events", seller, seen) },
		func(seen func(int)) { f.events("/inbox/events", seller, seen) },
		func(seen func(int)) { f.socket(path+"/ws", seller, seen) },
	} {
		go func() {
			defer func() { done <- i }()
			stream(func(sequence int) {
				if received[i] = append(received[i], sequence); sequence == acts/2 {
					half <- struct{}{}
				}
			})
		}()
	}
	for n := range acts {
		if n == acts/2 {
			for range 3 {
				<-half
			}
			brokers[0].Kill()
		}
		f.post(path+"/messages", buyer, fmt.Sprintf(`{"performative":"OBSERVE","messageId":%q,"body":{"subject":"%d"}}`, testkit.NewID(), n), nil)
	}
	f.post(path+"/messages", buyer, fmt.Sprintf(`{"performative":"CLOSE","messageId":%q,"body":{}}`, testkit.NewID()), nil)
	for range 3 {
		<-done
	}
	var all []int
	for n := range acts + 3 {
		all = append(all, n)
	}
	for i, want := range [][]int{all, slices.Delete(slices.Clone(all), 1, 2), all} { // no inbox has what its owner said
		if !slices.Equal(received[i], want) {
			t.Errorf("stream %d brought %v", i, received[i])
		}
	}
}

// A follower follows streams, at whichever broker is there.
type follower struct {
	*testing.T
	ctx   context.Context //nolint:containedctx // the test's own
	hosts []string
}

// ask sends a request to one broker after the other until one answers it.
func (f follower) ask(method, path, as, body string, change func(http.Header)) *http.Response {
	answer := &http.Response{StatusCode: http.StatusGone, Body: http.NoBody}
	if n := 0; testkit.Until(f.ctx, func() bool {
		n++
		r, err := http.NewRequestWithContext(f.ctx, method, "http://"+f.hosts[n%len(f.hosts)]+"/v1/asp"+path, strings.NewReader(body))
		if err != nil {
			f.Error(err)
			return true
		}
		r.Header.Set("Authorization", "Bearer "+as)
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		if change != nil {
			change(r.Header)
		}
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			return false
		}
		if a.StatusCode == http.StatusServiceUnavailable {
			a.Body.Close()
			return false
		}
		answer = a
		return true
	}) != nil {
		f.Error("nobody answers", path)
	}
	return answer
}

// post sends an act until it is accepted.
func (f follower) post(path, as, body string, into any) {
	f.Helper()
	a := f.ask(http.MethodPost, path, as, body, nil)
	defer a.Body.Close()
	data, err := io.ReadAll(a.Body)
	if err == nil && into != nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil || a.StatusCode >= 300 {
		f.Fatalf("%s is answered %d %s, %v", body, a.StatusCode, data, err)
	}
}

// events follows server-sent events until the session is over.
func (f follower) events(path, as string, seen func(sequence int)) {
	last := "0"
	if strings.HasPrefix(path, "/sessions") {
		last = "" // 0 is the first entry
	}
	for f.ctx.Err() == nil {
		a := f.ask(http.MethodGet, path, as, "", func(h http.Header) {
			if last != "" {
				h.Set("Last-Event-ID", last)
			}
		})
		lines := bufio.NewScanner(a.Body)
		lines.Buffer(nil, 1<<20)
		id, over := "", a.StatusCode != http.StatusOK
		for !over && lines.Scan() {
			switch field, value, _ := strings.Cut(lines.Text(), ": "); {
			case field == "id":
				id = value
			case field == "data" && id != "": // of a message
				var e entry
				if err := json.Unmarshal([]byte(value), &e); err != nil {
					f.Error(err)
					return
				}
				seen(e.Sequence)
				last, id, over = id, "", e.Integrity.Receipt.State == "CLOSED"
			}
		}
		a.Body.Close()
		if over {
			return
		}
	}
}

type entry struct {
	Sequence  int `json:"sequenceNumber"`
	Integrity struct{ Receipt struct{ State string } }
}

// socket follows a WebSocket until the session is over.
func (f follower) socket(path, as string, seen func(sequence int)) {
	last, n := "", 0
	testkit.Until(f.ctx, func() bool {
		n++
		conn, _, err := websocket.Dial(f.ctx, "ws://"+f.hosts[n%len(f.hosts)]+"/v1/asp"+path, nil) //nolint:bodyclose // the connection is the body
		if err != nil {
			return false
		}
		conn.SetReadLimit(-1)
		err = conn.Write(f.ctx, websocket.MessageText, []byte(`{"type":"auth","token":"`+as+`"`+last+`}`))
		for err == nil {
			var data []byte
			if _, data, err = conn.Read(f.ctx); err != nil {
				break
			}
			var frame struct {
				Type     string
				Envelope entry
			}
			if json.Unmarshal(data, &frame) == nil && frame.Type == "message" {
				seen(frame.Envelope.Sequence)
				last = `,"lastSequence":` + strconv.Itoa(frame.Envelope.Sequence)
			}
		}
		conn.CloseNow() //nolint:errcheck // it is over, or its broker is
		return websocket.CloseStatus(err) == 4009
	})
}
