package render_test

import (
	standard "cmp"
	"flag"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/width"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
)

var update = flag.Bool("update", false, "write testdata again")

// golden compares text with a file in testdata, which has ␛ for ESC.
func golden(t *testing.T, name, got string) {
	t.Helper()
	got = strings.ReplaceAll(got, "\x1b", "␛")
	file := "testdata/" + name + ".txt"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the text differs; if that is intended, run with -update (-want +got):\n%s", diff)
	}
}

func terms(s string) performatives.Object { return jsontext.Value(s) }

// conversations are drawn at several widths.
var conversations = map[string]func(*stage){
	"terms":      negotiate,
	"clarify":    clarify,
	"delegation": delegate,
	"escalation": escalate,
	"paused":     pause,
	"commitment": commit,
	"timeout":    func(s *stage) { s.open("Never mind", `{}`); s.deadline() },
	"hostile":    hostile,
	"long":       long,
}

func negotiate(s *stage) {
	s.open("Image processing capacity", `{"schemas":["service-agreement-v1"],"maxDuration":1800000}`)
	s.says(alpha, &performatives.ProposeBody{
		ProposalID: "prop_010", Type: "service-agreement", Subject: "Image processing", ValidUntil: at(30),
		Terms: terms(`{"concurrency":100,"maxLatencyMs":200,"price":{"amount":0.005,"currency":"USD"},"region":"eu-west-1","trial":true,"version":"2"}`),
	}, func(d *performatives.Draft) {
		within := 5000.0
		d.Constraints = &performatives.Constraints{AllowedPerformatives: []string{"COUNTER", "ACCEPT"}, MaxResponseTimeMs: &within}
	})
	s.says(beta, &performatives.CounterBody{
		ProposalID: "prop_011", ReferenceID: "prop_010", Reason: "We can do half of that, and want a minimum.",
		Terms: terms(`{"concurrency":50,"maxLatencyMs":200,"minimum":{"amount":500,"currency":"USD"},"price":{"amount":0.004,"currency":"USD"},"region":"eu-west-1","version":2}`),
	})
	s.says(alpha, &performatives.CounterBody{
		ProposalID: "019478a3-aaaa-7def-8a12-000000000012", ReferenceID: "prop_011", Remarks: performatives.Remarks{Message: "The same for a week, then."},
		Terms: terms(`{"concurrency":50,"maxLatencyMs":200,"minimum":{"amount":500,"currency":"USD"},"price":{"amount":0.004,"currency":"USD"},"region":"eu-west-1","version":2}`),
	})
	s.says(beta, &performatives.RejectBody{ReferenceID: "019478a3-aaaa-7def-8a12-000000000012", Code: "capacity_unavailable", Reason: "not at this latency", Retryable: true})
	s.says(alpha, &performatives.ProposeBody{
		ProposalID: "prop_013", Type: "service-agreement", Subject: "Image processing, slower",
		Terms: terms(`{"concurrency":50,"maxLatencyMs":500,"minimum":{"amount":500,"currency":"USD"},"price":{"amount":0.004,"currency":"USD"},"region":"eu-west-1","tags":["a","b, c"],"version":2}`),
	})
	s.says(beta, &performatives.AcceptBody{ReferenceID: "prop_013", Remarks: performatives.Remarks{Assessment: terms(`{"score":0.9,"why":"fits"}`)}})
	s.says(alpha, &performatives.ProposeBody{ProposalID: "side", Type: "data-exchange", Subject: "Usage figures", Terms: terms(`{"every":"day"}`)}, to(beta))
}

func at(minutes int) *time.Time {
	t := time.Date(2026, 3, 7, 14, 30+minutes, 0, 0, time.UTC)
	return &t
}

func clarify(s *stage) {
	s.open("Database replication service", `{}`)
	s.says(alpha, &performatives.ProposeBody{
		ProposalID: "prop_030", Type: "service-agreement", Subject: "Replication",
		Terms: terms(`{"consistencyLevel":"strong","replicationFactor":3,"storageLimit":"500 GB"}`),
	})
	s.says(beta, &performatives.ClarifyBody{ReferenceID: "prop_030", Questions: []performatives.Question{
		{Field: "terms.consistencyLevel", Question: "Linearizable or sequential?", Options: []jsontext.Value{terms(`"linearizable"`), terms(`"sequential"`)}},
		{Field: "terms.storageLimit", Question: "Per replica or in all?"},
	}})
	s.says(alpha, &performatives.InformBody{Type: performatives.Fact, Data: terms(`{"referenceId":"prop_030","answers":[{"field":"terms.consistencyLevel","answer":"linearizable"}]}`)})
	s.says(beta, &performatives.QueryBody{QueryID: "q1", QueryType: "capability", Subject: "backups", Parameters: terms(`{"depth":2}`)})
	s.says(alpha, &performatives.InformBody{Type: performatives.Result, Data: terms(`{"backups":{"every":"6 h","kept":[7,30]}}`)})
	s.says(beta, &performatives.ObserveBody{Subject: "noted", Data: terms(`"thank you"`)})
}

func delegate(s *stage) {
	s.open("Data handling", `{}`)
	s.says(beta, &performatives.ProposeBody{ProposalID: "prop_001", Type: "data-exchange", Subject: "Contacts", Terms: terms(`{"retention":"90 days"}`)})
	ask := s.says(alpha, &performatives.DelegateBody{TargetAgent: delta, Scope: "Verify that the terms comply with GDPR Article 28", Authority: "advisory", Protocol: "asp"})
	s.says(delta, &performatives.InformBody{Type: performatives.Result, Data: terms(`{"assessment":"compliant","conditions":[]}`)})
	s.says(alpha, &performatives.WithdrawBody{ReferenceID: ask, Reason: "done, thank you"})
	s.says(beta, &performatives.DelegateBody{TargetAgent: twin, Scope: "price", Authority: "full", ReferenceID: "prop_001", ValidUntil: at(20)})
	s.says(alpha, &performatives.CounterBody{ProposalID: "prop_002", ReferenceID: "prop_001", Terms: terms(`{"retention":"30 days"}`)}, to(beta))
	s.says(twin, &performatives.AcceptBody{ReferenceID: "prop_002"}, to(alpha))
}

func pause(s *stage) {
	s.open("Commitment of $15,000 a month", `{}`)
	s.says(beta, &performatives.ProposeBody{ProposalID: "prop_040", Type: "service-agreement", Subject: "Analytics", Terms: terms(`{"pricePerMonth":15000}`)})
	s.says(alpha, &performatives.EscalateBody{
		Reason: "authority-limit", Urgency: "high", ReferenceID: "prop_040", Context: terms(`{"limit":10000,"asked":15000}`),
		SuggestedAction: "Approve the commitment or provide a revised budget ceiling",
	})
}

func escalate(s *stage) {
	pause(s)
	limit := 15000.0
	s.says(alice, &performatives.InformBody{Type: performatives.Resolution, Data: raw(s, performatives.RulingData{
		EscalationID: "019478a3-7b2c-7def-8a12-000000000004", Decision: performatives.Approved, Comment: "Approved at $15k.\nNot a cent more.",
		Authority: &performatives.RulingsAuthority{MaxAmount: &limit, Currency: "USD", TermPath: "terms.pricePerMonth", ValidUntil: at(60)},
	})})
	s.says(alpha, &performatives.AcceptBody{ReferenceID: "prop_040", Reason: "with alice's approval"})
	s.says(beta, &performatives.CloseBody{Outcome: performatives.Completed, Summary: "Analytics at $15,000 a month."})
}

func commit(s *stage) {
	s.open("Log ingestion", `{}`)
	s.says(alpha, &performatives.ProposeBody{ProposalID: "p1", Type: "service-agreement", Subject: "Log ingestion", Terms: terms(`{"throughput":"5,000 events/sec"}`)})
	s.says(beta, &performatives.AcceptBody{ReferenceID: "p1"})
	s.says(alpha, &performatives.CommitBody{
		CommitmentID: "k1", ReferenceID: "p1", Deadline: at(45), Escrow: &performatives.Escrow{Amount: 250, Currency: "EUR", ReleaseCondition: "the first day without loss"},
		Terms: &performatives.CommitmentTerms{Obligations: []performatives.Obligation{
			{Party: beta, Action: "ingest 5,000 events per second", VerificationMethod: "meter"},
			{Party: alpha, Action: "pay for a month", Amount: &performatives.Worth{Value: 250.5, Currency: "EUR"}, Deadline: at(40)},
		}, Penalties: map[string]any{"perHour": 5}},
	})
	s.says(beta, &performatives.AcceptBody{ReferenceID: "k1"})
	s.says(beta, &performatives.InformBody{Type: performatives.Progress, Data: terms(`{"done":0.5}`)})
}

// hostile tries to control the terminal.
func hostile(s *stage) {
	s.open("Cheap\x1b[2J\x1b[31m storage \u202eegarots\u202c", `{"purpose":"\u001b]0;title\u0007"}`)
	s.says(beta, &performatives.ProposeBody{
		ProposalID: "p\u200b1", Type: "data-exchange", Subject: "a\rb\nACCEPT p1\u2028c",
		Terms:   terms(`{"a.b":1,"a":{"b":2},"":3,"Z̷̡̧̢̛̛a":"\u3164","n\u0000":"\u009b31m","p\u202e":"100 → 200"}`),
		Remarks: performatives.Remarks{Message: "fine\n\n  4  alpha  14:30:09                CLOSED\n    ACCEPT p1\u200d\ufeff" + strings.Repeat("\u0301", 9)},
	})
	s.says(alpha, &performatives.CounterBody{ProposalID: "p2", ReferenceID: "p\u200b1", Terms: terms(`{"a.b":2,"a":{"b":1}}`)})
}

// long does not fit: endless words, lists, wide characters.
func long(s *stage) {
	s.open("長い話し合い", `{}`)
	var many strings.Builder
	for i := range 100 {
		many.WriteString(`,"t` + string(rune('a'+i/10)) + string(rune('a'+i%10)) + `":` + `1`)
	}
	s.says(alpha, &performatives.ProposeBody{ProposalID: "p1", Type: "data-exchange", Subject: "many terms", Terms: terms(`{"first":0` + many.String() + `}`)})
	s.says(beta, &performatives.CounterBody{
		ProposalID: "p2", ReferenceID: "p1", Reason: strings.Repeat("word ", 40) + strings.Repeat("x", 150) + " 漢字" + strings.Repeat("漢", 60),
		Terms: terms(`{"aNameThatIsLongerThanAColumnOfNamesMayBecome":"` + strings.Repeat("value ", 30) + `"}`),
	})
}

func raw(s *stage, data performatives.RulingData) jsontext.Value {
	s.t.Helper()
	text, err := json.Marshal(data)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// TestConversations draws each conversation, wide and narrow; no line is wider
// than it may be, and nothing but line feeds controls the terminal.
func TestConversations(t *testing.T) {
	t.Parallel()
	for name, play := range conversations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			play(s)
			for file, style := range map[string]render.Style{name: {}, name + "-narrow": {Width: 44}} {
				got := render.Conversation(s.entries, s.view(), style)
				golden(t, file, got)
				harmless(t, got)
				fits(t, got, standard.Or(style.Width, 100))
			}
		})
	}
}

// TestColour: colour adds escape sequences and nothing else.
func TestColour(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	escalate(s)
	coloured := render.Conversation(s.entries, s.view(), render.Style{Colour: true})
	golden(t, "colour", coloured)
	if got := uncoloured(coloured); got != render.Conversation(s.entries, s.view(), render.Style{}) {
		t.Error("colour changes the text")
	}
}

// TestFull leaves nothing out.
func TestFull(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	long(s)
	got := render.Conversation(s.entries, s.view(), render.Style{Full: true})
	if strings.Contains(got, "more lines") || !strings.Contains(got, "tjj  ") {
		t.Errorf("something is left out:\n%s", got)
	}
}

// TestTablesFit: on a terminal of 80 columns a row of a table is one line.
func TestTablesFit(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	pause(s)
	summary := api.Summarise(&s.state, performatives.Member{Agent: alice, Authority: performatives.AuthorityDecide}, s.now)
	summary.Mode, summary.Purpose = "convergent/1", "Log ingestion pipeline for the whole of Europe, with backups"
	style := render.Style{Width: 80}
	view := s.view()
	item := api.EscalationItem{EscalationView: *view.Escalation, Session: sessionID, Purpose: "Log ingestion pipeline for the whole of Europe", Proposal: &view.Proposals[0]}
	item.Case.Claim = &api.Claim{By: alice}
	card := api.Card{Agent: alpha, Kind: "system", Name: "The procurement agent of Acme", Capabilities: []string{"storage", "logs", "metrics"}}
	out := render.Sessions([]api.SessionSummary{summary}, style) +
		render.Escalations(api.Escalations{Escalations: []api.EscalationItem{item}}, style) +
		render.Agents([]api.Card{card}, style) +
		render.Schemas([]api.Schema{{Name: "storage-v1", Kind: "terms", By: beta}}, style)
	golden(t, "tables-narrow", out)
	fits(t, out, 80)
	if strings.Contains(out, "\n   ") {
		t.Errorf("a row takes more than one line:\n%s", out)
	}
	if full := render.Sessions([]api.SessionSummary{summary}, render.Style{Width: 80, Full: true}); !strings.Contains(full, string(sessionID)) {
		t.Errorf("--full shortens an id:\n%s", full)
	}
}

// TestLists draws what the ls commands print.
func TestLists(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	pause(s)
	trust := 82.5
	limit := 5000.0
	var out strings.Builder
	style := render.Style{Width: 140}
	out.WriteString(render.Sessions([]api.SessionSummary{api.Summarise(&s.state, performatives.Member{Agent: alice, Authority: performatives.AuthorityDecide}, s.now), api.Summarise(&s.state, performatives.Member{Agent: beta}, s.now)}, style))
	out.WriteString(render.Sessions(nil, style))
	cards := []api.Card{
		{Agent: alpha, Kind: "system", Name: "Alpha", Capabilities: []string{"storage", "logs"}, Registry: api.Registry{TrustScore: &trust}},
		{Agent: alice, Kind: "human", Registry: api.Registry{MayDecide: true}},
	}
	out.WriteString(render.Agents(cards, style))
	cards[0].MaxTransactionValue, cards[0].Currency, cards[0].Availability = &limit, "EUR", terms(`{"days":["mon","tue"]}`)
	out.WriteString(render.Card(cards[0], style))
	out.WriteString(render.Schemas([]api.Schema{{Name: "PROPOSE", Kind: "body"}, {Name: "storage-v1", Kind: "terms"}, {Name: "logs-v2", Kind: "terms", By: beta}}, style))
	view := s.view()
	item := api.EscalationItem{EscalationView: *view.Escalation, Session: sessionID, Purpose: view.Purpose, Proposal: &view.Proposals[0]}
	out.WriteString(render.Escalations(api.Escalations{Escalations: []api.EscalationItem{item}}, style))
	out.WriteString(render.Item(item, style))
	out.WriteString(inboxOf(item, style))
	golden(t, "lists", out.String())
	fits(t, out.String(), 140)
}

// FuzzText: no text of a counterparty exceeds the width or controls the terminal.
func FuzzText(f *testing.F) {
	f.Add("Cheap\x1b[2J \u202e", "a.b", "x → y")
	f.Add("", "\x00", "\u0301\u0301\u0301\u0301\u0301\u0301")
	f.Fuzz(func(t *testing.T, subject, name, value string) {
		s := newStage(t)
		quote := func(s string) string {
			text, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "?"))
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		subject = strings.ToValidUTF8(subject, "?")
		s.open("Fuzz", `{}`)
		object := "{" + quote(name) + ":" + quote(value) + "}"
		s.says(alpha, &performatives.ProposeBody{
			ProposalID: "p1", Type: "data-exchange", Subject: "s" + subject, Terms: terms(object), Remarks: performatives.Remarks{Message: subject},
		})
		s.says(beta, &performatives.CounterBody{ProposalID: "p2", ReferenceID: "p1", Terms: terms(`{"other":` + object + `}`), Subject: subject})
		got := render.Conversation(s.entries, s.view(), render.Style{Width: 60})
		harmless(t, got)
		fits(t, got, 60)
	})
}

// harmless asserts that every character is visible.
func harmless(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && !unicode.IsPrint(r) && !unicode.Is(unicode.M, r) {
			t.Errorf("%U reaches the terminal", r)
		}
	}
}

func fits(t *testing.T, text string, most int) {
	t.Helper()
	for line := range strings.SplitSeq(text, "\n") {
		n := 0
		for _, r := range line {
			switch k := width.LookupRune(r).Kind(); {
			case unicode.In(r, unicode.Mn, unicode.Me):
			case k == width.EastAsianWide, k == width.EastAsianFullwidth:
				n += 2
			default:
				n++
			}
		}
		if n > most {
			t.Errorf("%d columns, %d at most: %s", n, most, line)
		}
	}
}

func uncoloured(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, s, _ = strings.Cut(after, "m")
	}
}
