package testkit_test

import (
	"bytes"
	"flag"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	alpha = performatives.Agent("agent://acme.com/alpha")
	beta  = performatives.Agent("agent://widgets.co/beta")
)

// TestWorld opens a session with and without logins, and restarts the broker in it.
func TestWorld(t *testing.T) {
	t.Parallel()
	for _, dev := range []bool{false, true} {
		w := testkit.NewWorld(t, testkit.Options{Dev: dev})
		a, b := w.Principal(alpha), w.Principal(beta)
		id := w.Open(a, b)
		offer := b.Say(id, testkit.Offer("p1", 250))
		if read := a.Read(2); !bytes.Contains(read[1], []byte(offer.Hash)) {
			t.Errorf("dev %t: the offer %s was delivered as %s", dev, offer.Hash, read[1])
		}
		testkit.Refused(t, b.Submit(id, []byte("{")), session.MalformedEnvelope)
		w.Crash()
		w.Up()
		testkit.Refused(t, b.Submit(id, b.Envelope(id, &performatives.AcceptBody{ReferenceID: "p1"})), session.OwnProposal)
		view, err := w.Client(alpha).View(w.Ctx, id)
		if err != nil || view.State != session.Conversing {
			t.Errorf("dev %t: the session is %v: %v", dev, view.State, err)
		}
	}
}

// TestBrokerProcess runs a broker and a server in processes of their own.
func TestBrokerProcess(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	config, err := server.Config(data, testkit.Shards)
	testkit.Must(t, err)
	s := testkit.StartServerProcess(t, config)
	b := testkit.StartBrokerProcess(t, testkit.ProcessOptions{Data: data, NATS: s.URL()})
	if b.URL != s.URL() {
		t.Errorf("the broker is at %s, want %s", b.URL, s.URL())
	}
	b.SetClock(time.Minute)
	b.Kill()
	s.Stop()
	if nc, err := nats.Connect(s.URL()); err == nil {
		nc.Close()
		t.Error("the server was stopped, and lets a client in")
	}
	s.Start()
	testkit.StartBrokerProcess(t, testkit.ProcessOptions{Data: data, NATS: s.URL()})
}

// TestClock moves a clock that stands, and one that runs.
func TestClock(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)
	stopped, running := testkit.StoppedClock(at), &testkit.Clock{}
	stopped.Advance(time.Hour)
	running.Advance(-time.Hour)
	if got := stopped.Now(); !got.Equal(at.Add(time.Hour)) {
		t.Errorf("the stopped clock says %s", got)
	}
	if ahead := time.Until(running.Now()); ahead > -59*time.Minute || ahead < -61*time.Minute {
		t.Errorf("the running clock is %s ahead", ahead)
	}
}

// TestParallel asserts that tests which wait leave the cores to others: more of them run at once
// than there are cores.
func TestParallel(t *testing.T) {
	t.Parallel()
	if slices.ContainsFunc(os.Args, func(arg string) bool { return strings.HasPrefix(arg, "-test.parallel") }) {
		return // whoever runs the tests says how many
	}
	if got := flag.Lookup("test.parallel").Value.String(); got == flag.Lookup("test.parallel").DefValue && runtime.GOMAXPROCS(0) < 12 {
		t.Errorf("%s tests run at once, which is a test for each core", got)
	}
}

// TestRequest asserts that what a broker refuses as unavailable is asked again so often, and no more.
func TestRequest(t *testing.T) {
	t.Parallel()
	nc := testkit.StartServer(t).Connect()
	asked, refusals := 0, 3
	_, err := nc.Subscribe("asked", func(m *nats.Msg) {
		asked++
		answer := nats.NewMsg(m.Reply)
		if asked <= refusals {
			answer.Header.Set(api.ErrorCodeHeader, "503")
		}
		testkit.Must(t, m.RespondMsg(answer))
	})
	testkit.Must(t, err)
	if _, err := testkit.RequestAgain(nc, 2, "asked", nil); err == nil || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	asked = 0
	if _, err := testkit.RequestAgain(nc, 3, "asked", nil); err != nil || asked != 4 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}
