package main

import (
	"bytes"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// TestTop: what was said between two pages is on the second, whichever brokers do not answer.
func TestTop(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{Dev: true, Monitor: "127.0.0.1:0"})
	monitors := []string{w.MonitorAddr, "127.0.0.1:1"}
	buyer, seller := w.Client(alpha), w.Client(beta)
	before := scrapeAll(w.Ctx, monitors)
	const deals = 3
	for range deals {
		s, err := buyer.Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "storage"})
		testkit.Must(t, err)
		_, err = seller.Session(s.ID()).Accept(w.Ctx, "inv")
		testkit.Must(t, err)
		if _, err = seller.Session(s.ID()).Accept(w.Ctx, "nothing"); err == nil {
			t.Fatal("an ACCEPT of nothing was accepted")
		}
	}
	var now scrape
	testkit.Eventually(t, "an act is counted after its answer", func() bool {
		now = scrapeAll(w.Ctx, monitors)
		p := newTopPage(monitors, before, now)
		return len(p.Refusals) > 0 && p.Sessions["INTRODUCED"] == deals
	})
	p := newTopPage(monitors, before, now)
	times := func(rate float64) int { return int(math.Round(rate * now.At.Sub(before.At).Seconds())) }
	said := map[string]api.ActRates{}
	for _, a := range p.Acts {
		said[a.Performative] = a
	}
	if times(said["PROPOSE"].Accepted) != deals || times(said["ACCEPT"].Accepted) != deals || times(said["ACCEPT"].Refused) != deals {
		t.Errorf("after %d deals: %+v", deals, said)
	}
	refusals := 0.0
	for _, rate := range p.Refusals {
		refusals += rate
	}
	if times(refusals) != deals || p.Sessions["INTRODUCED"] != deals {
		t.Errorf("refusals %v, sessions %v", p.Refusals, p.Sessions)
	}
	for _, took := range p.Times {
		if took.Of == "accepted" && (times(took.Rate) != 2*deals || took.Median <= 0 || took.P99 < took.Median) {
			t.Errorf("%+v", took)
		}
	}
	if len(p.Brokers) != 2 || !p.Brokers[0].Ready || p.Brokers[0].Partitions != 128 || p.Brokers[1].Error == "" {
		t.Errorf("brokers %+v", p.Brokers)
	}
	if text := p.text(render.Style{}); !strings.Contains(text, "INTRODUCED 3") || strings.Contains(text, "\x1b") || !strings.Contains(text, "refused") {
		t.Error(text)
	}
}

// A broker that does not answer has a row as wide as the others', and below them why.
func TestTopColumns(t *testing.T) {
	t.Parallel()
	alive := api.BrokerUse{Ready: true, Version: "0.1.0", Partitions: 64}
	p := topPage{Brokers: []topBroker{{Monitor: "a:1", BrokerUse: alive}, {Monitor: "broker-2.example:8081", Error: "dial tcp: connection refused"}, {Monitor: "c:1", BrokerUse: alive}}}
	lines := strings.Split(p.text(render.Style{}), "\n")[2:]
	for _, column := range []struct{ title, value string }{{"READY", "yes"}, {"VERSION", "0.1.0"}, {"PARTITIONS", "64"}, {"DISK FREE", "-"}} {
		at := strings.Index(lines[0], column.title)
		for _, n := range []int{1, 3} {
			if !strings.HasPrefix(lines[n][at:], column.value) {
				t.Errorf("%s is not below %s:\n%s", column.value, column.title, strings.Join(lines, "\n"))
			}
		}
	}
	if lines[4] != "broker-2.example:8081: dial tcp: connection refused" {
		t.Errorf("%q", lines[4])
	}
}

// What is no monitor is refused, and nothing of what it says reaches the terminal as it is.
func TestTopRefuses(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"an error":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"a page":        func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("\x1b[31mhello")) },
		"half a metric": func(w http.ResponseWriter, _ *http.Request) { asMetrics(w); _, _ = w.Write([]byte{200, 1, 2}) },
		"too many bytes": func(w http.ResponseWriter, _ *http.Request) {
			asMetrics(w)
			for range 1 << 10 { // families with a help of 2,047 bytes
				_, _ = w.Write(append([]byte{0x82, 0x10, 0x12, 0xff, 0x0f}, bytes.Repeat([]byte("x"), 2047)...))
			}
		},
	} {
		s := httptest.NewServer(answer)
		t.Cleanup(s.Close)
		root := rootCommand()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs([]string{"top", "--count", "1", s.Listener.Addr().String()})
		if err := root.ExecuteContext(t.Context()); err == nil || strings.Contains(out.String(), "\x1b") {
			t.Errorf("%s: %v %q", name, err, out.String())
		}
	}
	for _, wrong := range [][]string{{"top"}, {"top", "--every", "1ms", "x:1"}, {"top", "--count", "-1", "x:1"}, {"top", "a b"}} {
		root := rootCommand()
		root.SetArgs(wrong)
		if err := root.ExecuteContext(t.Context()); err == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
}

func asMetrics(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited")
}

// A page as JSON is one line.
func TestTopJSON(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{Dev: true, Monitor: "127.0.0.1:0"})
	root := rootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs([]string{"top", "--json", "--every", "1s", "--count", "1", w.MonitorAddr})
	testkit.Must(t, root.ExecuteContext(t.Context()))
	var p topPage
	testkit.Must(t, json.Unmarshal(out.Bytes(), &p))
	if strings.Count(out.String(), "\n") != 1 || len(p.Brokers) != 1 || !p.Brokers[0].Ready {
		t.Errorf("%s", out.String())
	}
}
