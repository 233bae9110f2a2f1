package demo

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// playAll plays scenes, which must end as expected.
func playAll(t *testing.T, o Options) (Report, string) {
	t.Helper()
	var out bytes.Buffer
	o.Out = &out
	r, err := Run(t.Context(), o)
	testkit.Must(t, err)
	for _, s := range r.Scenes {
		if !s.OK() {
			t.Errorf("%s: %s", s.Pattern, s.Faults)
		}
	}
	if !r.OK || t.Failed() {
		t.Fatalf("the demo failed:\n%s", out.String())
	}
	return r, out.String()
}

// Every scene, end to end, on the demo's own broker with logins and signatures, and the same
// over HTTP with hosted agents.
func TestScenes(t *testing.T) {
	t.Parallel()
	for _, face := range []string{NATS, HTTP} {
		t.Run(face, func(t *testing.T) {
			t.Parallel()
			everyScene(t, face)
		})
	}
}

func everyScene(t *testing.T, face string) {
	kept := t.TempDir()
	r, out := playAll(t, Options{Mode: All, Face: face, Keep: kept})
	custody(t, face, filepath.Join(kept, Transcripts, "delivery.jsonl"))
	if hosted := strings.Contains(out, "hosted, so the broker holds the key that signs: alpha"); hosted != (face == HTTP) {
		t.Errorf("over %s agents are hosted: %t", face, hosted)
	}
	want := []struct {
		pattern, mode, outcome string
		messages               int
	}{
		{"simple-accept", "asp/1", "completed", 9},
		{"counter-loop", "asp/1", "completed", 7},
		{"rejection-with-retry", "asp/1", "completed", 7},
		{"clarification-round", "asp/1", "completed", 7},
		{"delegation", "asp/1", "completed", 10},
		{"escalation", "asp/1", "completed", 7},
		{"bilateral", "bilateral/1", "pending", 7},
		{"convergent", "convergent/1", "completed", 11},
		{"binding", "binding/1", "accepted", 5},
		{"delivery", "asp/1", "completed", 17},
	}
	if len(r.Scenes) != len(want) {
		t.Fatalf("%d scenes, want %d", len(r.Scenes), len(want))
	}
	for i, w := range want {
		s := r.Scenes[i]
		if s.Pattern != w.pattern || s.Mode != w.mode || s.Outcome != w.outcome || s.Messages != w.messages {
			t.Errorf("scene %d is %+v, want %+v", i+1, s, w)
		}
		if s.State != session.Closed || !s.Verified {
			t.Errorf("%s: state %s, verified %t; want CLOSED and verified", s.Pattern, s.State, s.Verified)
		}
	}
	inOrder(t, out,
		"1. Simple accept", "PROPOSE prop_001", "throughput", "5000 events/sec", "AGREEING", "COMMIT commit_001", "EXECUTING", "CLOSE completed",
		"2. Counter loop", "100", "~ maxLatencyMs", "200 → 500", "Can't do 200 ms", "75", "Need latency under 400 ms", "ACCEPT prop_012",
		"3. Rejection with retry", "REJECT prop_020", "capacity_unavailable", "~ updateFrequencyMs", "100 → 500", "ACCEPT prop_021",
		"4. Clarification round", "CLARIFY prop_030", "linearizable · sequential",
		"Database platform sends ACCEPT → refused clarification_pending", "INFORM answers", "linearizable", "per-replica", "ACCEPT prop_030",
		"5. Delegation", "DELEGATE to compliance-checker: advisory", "(for alpha, advisory)", "compliant", "ACCEPT prop_040",
		"6. Escalation", "ESCALATED", "ESCALATE authority-limit, urgency high", "$15,000/month",
		"Enterprise sales sends WITHDRAW → refused session_escalated", "in the escalation inbox of acme.example",
		"alice (human)", "approved", "at most 15000 USD, in terms.pricePerMonth", "Approved at $15k", "ACCEPT prop_050",
		"7. A match", "CLARIFY match_1", "COUNTER match_1", "CLOSED: pending",
		"agreed match_2", "agent://index.example/negotiators/maya", "patient", "agent://jonas.example/assistant", "agent",
		"8. Rounds", "COUNTER p1", "COUNTER p2", "ACCEPT p3", "ACCEPT p3", "COMMIT", "EXECUTING",
		"verified offline", string(r.Broker), "PATTERN", "1 Simple accept", "CLOSED  completed  yes", "8 Rounds", "yes",
	)
	if strings.Contains(out, "\x1b") {
		t.Error("there is an escape sequence in output without colour")
	}
}

// inOrder asserts that the output contains the texts in this order.
func inOrder(t *testing.T, out string, texts ...string) {
	t.Helper()
	rest := out
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			t.Errorf("%q is not where it should be in:\n%s", text, out)
			return
		}
		rest = after
	}
}

// On a running broker, the second demo finds its agents registered with other
// keys, and the third finds what a failed scene left in an inbox.
func TestRunningBroker(t *testing.T) {
	t.Parallel()
	for name, dev := range map[string]bool{"login": false, "dev": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := testkit.StartBroker(t, testkit.Options{Dev: dev})
			o := Options{URL: b.URL, Mode: ASP, Quiet: true}
			if !dev {
				o.Operator = b.Operator()
			}
			first, _ := playAll(t, o)
			broken := pattern(t, "simple-accept")
			broken.lines[0].answer = "accepted CLOSED"
			if r, err := run(t.Context(), o, []scene{broken}); err != nil || r.OK {
				t.Fatalf("a failing scene: %+v, %v", r, err)
			}
			again, out := playAll(t, o)
			if first.Broker != b.Broker.Command.Key() || again.Broker != b.Broker.Command.Key() {
				t.Errorf("brokers %s and %s, want %s", first.Broker, again.Broker, b.Broker.Command.Key())
			}
			if strings.Contains(out, "PROPOSE") || !strings.Contains(out, "6 Escalation") {
				t.Errorf("quiet prints more than the summary:\n%s", out)
			}
		})
	}
}

// A broker with logins needs the operator's key.
func TestNoOperator(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{})
	if _, err := Run(t.Context(), Options{URL: b.URL}); !errors.Is(err, nats.ErrAuthorization) || !strings.Contains(err.Error(), "operator's key") {
		t.Errorf("without a key: %v", err)
	}
	outsider, err := nkeys.CreateUser()
	testkit.Must(t, err)
	if _, err := Run(t.Context(), Options{URL: b.URL, Operator: outsider}); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("with an outsider's key: %v", err)
	}
	if _, err := Run(t.Context(), Options{Mode: "chess"}); err == nil || !strings.Contains(err.Error(), "bilateral") {
		t.Errorf("an unknown mode: %v", err)
	}
}

// The kept transcripts verify, and another demo continues with the data.
func TestKeep(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "kept")
	first, _ := playAll(t, Options{Mode: Convergent, Keep: dir})
	second, _ := playAll(t, Options{Mode: Bilateral, Keep: dir})
	if first.Broker != second.Broker {
		t.Errorf("the broker was %s and is %s", first.Broker, second.Broker)
	}
	for name, r := range map[string]Result{"convergent": first.Scenes[0], "bilateral": second.Scenes[0]} {
		data, err := os.ReadFile(filepath.Join(dir, Transcripts, name+".jsonl"))
		testkit.Must(t, err)
		faults, err := transcript.Verify(bytes.NewReader(data), first.Broker, transcript.Expect{Session: r.Session, Length: r.Messages})
		if err != nil || len(faults) > 0 {
			t.Errorf("%s: %v %v", name, faults, err)
		}
	}
}

// A changed or truncated export, a broken rule and an unexpected result are
// faults.
func TestCheck(t *testing.T) {
	t.Parallel()
	s, err := open(t.Context(), Options{}, nil)
	testkit.Must(t, err)
	defer s.close() //nolint:errcheck // only a test
	sc := pattern(t, "simple-accept")
	good := s.play(t.Context(), &sc, func(transcript.Entry) {}, func(string) {})
	if r := check(&sc, good, s.key); !r.OK() {
		t.Fatalf("unchanged: %s", r.Faults)
	}
	for _, c := range []struct {
		name, fault string
		verified    bool
		corrupt     func(*scene, *played)
	}{
		{"a byte is changed", "hash", false, func(_ *scene, p *played) {
			changed := bytes.Replace(p.entries[2].Bytes, []byte("250"), []byte("150"), 1)
			p.entries[2].Bytes = changed
		}},
		{"an entry is missing", "entry 4 is missing", false, func(_ *scene, p *played) { p.entries = append(p.entries[:4:4], p.entries[5:]...) }},
		{"the end is missing", "length", false, func(_ *scene, p *played) { p.entries = p.entries[:8] }},
		{"the agents were told something else", "head", false, func(_ *scene, p *played) { p.received[8].Stamp.Hash = performatives.NoHash }},
		{"the broker shows another state", "replay", false, func(_ *scene, p *played) { p.view.State = session.Failed }},
		{"other acts", "the acts were", true, func(sc *scene, _ *played) { sc.acts = []string{"PROPOSE", "REJECT"} }},
		{"another offer", "the accepted offer was", true, func(sc *scene, _ *played) { sc.agreed = "prop_002" }},
		{"another outcome", "the session ended", true, func(sc *scene, _ *played) { sc.outcome = performatives.Abandoned }},
		{"it failed", "the scene failed", false, func(_ *scene, p *played) { p.err = errors.New("the power went") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			sc, p := sc, good
			p.entries = append([]transcript.Entry(nil), good.entries...)
			p.received = append([]transcript.Entry(nil), good.received...)
			c.corrupt(&sc, &p)
			r := check(&sc, p, s.key)
			if r.OK() || r.Verified != c.verified || !strings.Contains(strings.Join(r.Faults, "\n"), c.fault) {
				t.Errorf("verified %t, faults %q; want %t and %q among them", r.Verified, r.Faults, c.verified, c.fault)
			}
		})
	}
}

// A failed scene is reported, and does not stop the others.
func TestBrokenScene(t *testing.T) {
	t.Parallel()
	broken := pattern(t, "counter-loop")
	broken.lines[3].answer = "refused own_proposal"
	var out bytes.Buffer
	r, err := run(t.Context(), Options{Out: &out, Style: render.Style{Colour: true}}, []scene{broken, pattern(t, "simple-accept")})
	testkit.Must(t, err)
	if r.OK || r.Scenes[0].OK() || !r.Scenes[1].OK() {
		t.Errorf("scenes %+v", r.Scenes)
	}
	const why = "seller COUNTER: the answer is accepted CONVERSING; expected refused own_proposal"
	inOrder(t, out.String(), "the scene failed: "+why, "1 Counter loop", "NO", "2 Simple accept", "yes", why)
	if !strings.Contains(out.String(), "\x1b[31mNO\x1b[0m") {
		t.Error("the output has no colour")
	}
}

// What a script cannot mean is an error, with the line.
func TestScripts(t *testing.T) {
	t.Parallel()
	const actors = "== x: X\na is agent://a.example/a, A\n"
	for text, want := range map[string]string{
		actors + `b ACCEPT {} : accepted CLOSED`:         "who is b?",
		actors + `kind b personal`:                       "who is b?",
		actors + `limit a much USD`:                      "invalid syntax",
		actors + `a ACCEPT : accepted CLOSED`:            "no body",
		actors + `a ACCEPT {"x" : accepted CLOSED`:       "invalid",
		actors + `a ACCEPT now {} : accepted CLOSED`:     "who does what?",
		actors + `a ACCEPT {} by=night : accepted`:       "what is by=night?",
		actors + `a ACCEPT {}`:                           "what is it answered?",
		actors + "a ACCEPT\n  {} -> a : accepted CLOSED": "",
	} {
		if _, err := parse(text); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s\n%v, want %q", text, err, want)
		}
	}
}

// An output error, such as a closed pipe, is an error of the demo.
func TestOutputFails(t *testing.T) {
	t.Parallel()
	broken := output(func([]byte) (int, error) { return 0, os.ErrClosed })
	if _, err := run(t.Context(), Options{Out: broken}, []scene{pattern(t, "simple-accept")}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("error %v", err)
	}
}

// An interrupted demo ends and cleans up.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	interrupt := output(func(text []byte) (int, error) {
		if bytes.Contains(text, []byte("PROPOSE prop_001")) {
			cancel()
		}
		return len(text), nil
	})
	if _, err := run(ctx, Options{Out: interrupt}, []scene{pattern(t, "simple-accept")}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

type output func([]byte) (int, error)

func (f output) Write(text []byte) (int, error) { return f(text) }

// pattern is a scene by its name.
func pattern(t *testing.T, name string) scene {
	t.Helper()
	all, err := scenes(NATS, All)
	testkit.Must(t, err)
	return all[slices.IndexFunc(all, func(s scene) bool { return s.name == name })]
}
