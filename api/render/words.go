package render

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/performatives"
)

// Figure formats a number with thousands separators, without rounding.
func Figure(n float64) string {
	if math.Abs(n) >= 1e15 {
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
	whole, part, _ := strings.Cut(strconv.FormatFloat(math.Abs(n), 'f', -1, 64), ".")
	var groups []string
	for len(whole) > 3 {
		groups = append([]string{whole[len(whole)-3:]}, groups...)
		whole = whole[:len(whole)-3]
	}
	text := strings.Join(append([]string{whole}, groups...), ",")
	if part != "" {
		text += "." + part
	}
	if n < 0 {
		text = "−" + text
	}
	return text
}

// Money formats an amount with its currency, with two decimals if it has any.
func Money(n float64, currency string) string {
	return strings.TrimSpace(Clean(currency) + " " + cents(Figure(n)))
}

// cents writes the second decimal of an amount that has one.
func cents(number string) string {
	if _, part, has := strings.Cut(number, "."); has && len(part) == 1 {
		return number + "0"
	}
	return number
}

// Moment formats a time in UTC to the minute. With JavaScript, the browser shows it in
// the reader's time zone.
func Moment(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04 UTC") }

// reasons are the texts for the reasons of an ESCALATE.
var reasons = map[string]string{
	"authority-limit":      "Above the agent’s authority",
	"confidence-low":       "The agent is not confident",
	"policy-ambiguous":     "The policy is ambiguous",
	"adversarial-detected": "The agent suspects bad faith",

	performatives.Confirmation: "An agreement to confirm",
	performatives.Delivered:    "A delivery to accept",
	performatives.Dispute:      "A dispute to answer",
}

// Reason is a reason of an ESCALATE in words.
func Reason(code string) string { return cmp.Or(reasons[code], Clean(code)) }

// endings are the texts for why a session is over: outcomes of a CLOSE, deadlines, and what modes say.
var endings = map[string]string{
	"completed": "Completed", "abandoned": "Ended by a party, without an agreement", "failed": "Failed, says the party that closed it",

	"session_timeout":    "Failed: the time of the session was over",
	"invitation_timeout": "Failed: the invitation was not answered in time",
	"escalation_expired": "Failed: no human decided in time",
	"response_timeout":   "Failed: a party did not answer in time",
	"timeout":            "Failed: a party did not answer in time",

	"insufficient_trust_score": "Rejected: the trust score is too low", "unauthorized": "Rejected: not authorized",
	"schema_unsupported": "Rejected: the schema is not supported", "budget_exceeded": "Rejected: above the budget",
	"capacity_unavailable": "Rejected: no capacity", "policy_violation": "Rejected: against a policy", "duplicate": "Rejected: a duplicate",
	"escalation_required": "Rejected: a human would have to be asked", "unspecified": "Rejected, without a reason",

	"accepted": "Agreed", "confirmed": "Agreed, and confirmed by people of both organisations", "pending": "Agreed: people have to confirm it",
	"declined": "Ended: a human did not confirm it", "rejected": "Ended: an offer was rejected", "withdrawn": "Ended: the offer was withdrawn",
	"expired": "Ended: the offer expired", "turn_cap": "Ended without an agreement: too many turns",
}

// Ending says why a session is over. A code that a party chose is quoted.
func Ending(code string) string {
	if text, ok := endings[code]; ok {
		return text
	}
	return cmp.Or(strings.TrimSuffix("Ended: “"+Clean(code)+"”", ": “”"), "Ended")
}

// worded says a code as part of a sentence: why an agent asks, an offer was rejected, or a session is over.
func worded(code string) string {
	_, why, _ := strings.Cut(endings[code], ": ")
	return cmp.Or(reasons[code], why, Clean(code))
}

func stamp(s string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, s)
	return t.UTC(), err == nil
}

func clock(s string) string {
	if t, ok := stamp(s); ok {
		return t.Format(time.TimeOnly)
	}
	return s
}

func date(s string) string {
	if t, ok := stamp(s); ok {
		return t.Format(time.DateOnly)
	}
	return s
}

// when formats a time in UTC to the second.
func when(t time.Time) string { return t.UTC().Format(time.DateTime) + " UTC" }

func whenStamp(s string) string {
	if t, ok := stamp(s); ok {
		return when(t)
	}
	return s
}

// A namer assigns each principal a short name and a colour: alpha for
// agent://acme.com/procurement/alpha, and more of the URI for a second alpha.
type namer struct {
	roles map[performatives.Agent]role
	names map[string]bool
	acts  map[performatives.Agent]string // the authority of each delegate
}

type role struct {
	name  string
	voice ink
}

const brokerName = "broker"

func newNamer() namer {
	return namer{
		roles: map[performatives.Agent]role{}, names: map[string]bool{brokerName: true, "everybody": true},
		acts: map[performatives.Agent]string{},
	}
}

func (c *namer) of(a performatives.Agent) role {
	if a.IsBroker() {
		return role{brokerName, faint}
	}
	if known, ok := c.roles[a]; ok {
		return known
	}
	_, path, _ := strings.Cut(string(a), "://")
	segments := strings.Split(path, "/")
	name := segments[len(segments)-1]
	for at := len(segments) - 2; at >= 0 && c.names[name]; at-- {
		name = segments[at] + "/" + name
	}
	if name == "" || c.names[name] {
		name = string(a)
	}
	first := role{name, voice(len(c.roles))}
	c.names[name] = true
	c.roles[a] = first
	return first
}

// name returns a principal's short name in its colour.
func (c *namer) name(a performatives.Agent) Span {
	r := c.of(a)
	return Span{r.name, r.voice}
}

func present(texts ...string) []string {
	var there []string
	for _, t := range texts {
		if t != "" {
			there = append(there, t)
		}
	}
	return there
}

func milliseconds(ms int64) string {
	d := (time.Duration(ms) * time.Millisecond).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(d, zero) {
			d = d[:len(d)-2]
		}
	}
	return d
}

func number(f float64) string {
	raw, err := json.Marshal(f)
	if err != nil {
		return "?"
	}
	return string(raw)
}

// Count says how many there are of something: 1 fault, or 2 faults.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
