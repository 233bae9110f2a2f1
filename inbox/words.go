package inbox

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
)

// clean escapes characters in untrusted text that are invisible or change how other
// text appears, and keeps its lines. The templates escape markup.
func clean(s string) string {
	lines := strings.Split(strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\t", "    "), "\n")
	for i, line := range lines {
		lines[i] = render.Clean(line)
	}
	return strings.Join(lines, "\n")
}

// A prose is free text, with an excerpt if it is long.
type prose struct {
	All   string
	Start string // "" if All is short
	Size  int    // characters of All
}

// Brief is the text on one line, in a form.
func (p prose) Brief() string {
	text := strings.Join(strings.Fields(p.All), " ")
	if r := []rune(text); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return text
}

// The length of an excerpt, in characters and lines.
const (
	longProse = 900
	longLines = 12
)

func asProse(s string) prose {
	p := prose{All: clean(s), Size: utf8.RuneCountInString(s)}
	start := p.All
	if lines := strings.SplitN(start, "\n", longLines+1); len(lines) > longLines {
		start = strings.Join(lines[:longLines], "\n")
	}
	if utf8.RuneCountInString(start) > longProse {
		start = string([]rune(start)[:longProse])
	}
	if start != p.All {
		p.Start = start + " …"
	}
	return p
}

// oneLine formats text for titles and rows.
func oneLine(s string) string {
	s = render.Clean(strings.Join(strings.Fields(s), " "))
	if utf8.RuneCountInString(s) > 240 {
		s = string([]rune(s)[:240]) + "…"
	}
	return s
}

// valueText formats a JSON value for people: a string without quotes, anything else as
// JSON.
func valueText(v jsontext.Value) string {
	if v.Kind() == '"' {
		if text, err := jsontext.AppendUnquote(nil, v); err == nil {
			return clean(string(text))
		}
	}
	if v.Kind() == '0' {
		var n float64
		if json.Unmarshal(v, &n) == nil {
			return figure(n)
		}
	}
	return clean(string(v))
}

// figure formats a number with thousands separators, without rounding.
func figure(n float64) string {
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

// money formats an amount with its currency, with two decimals if it has any.
func money(n float64, currency string) string {
	text := figure(n)
	if whole, part, has := strings.Cut(text, "."); has && len(part) == 1 {
		text = whole + "." + part + "0"
	}
	return strings.TrimSpace(render.Clean(currency) + " " + text)
}

// pathOf returns a principal's short name, its path.
func pathOf(a performatives.Agent) string {
	_, rest, _ := strings.Cut(string(a), "://")
	_, path, ok := strings.Cut(rest, "/")
	if !ok {
		return rest
	}
	return path
}

// maxName is the maximum length of a display name, in characters.
const maxName = 40

// called returns a principal's name in the registry and its path, or the path alone. A
// name is what somebody chose, so it never stands alone.
func (i *Inbox) called(a performatives.Agent) string {
	path := pathOf(a)
	name := []rune(oneLine(i.Broker.NameOf(a)))
	if len(name) > maxName {
		name = append(name[:maxName], '…')
	}
	if len(name) == 0 || strings.EqualFold(string(name), path[strings.LastIndexByte(path, '/')+1:]) {
		return path
	}
	return string(name) + " (" + path + ")"
}

func organisation(a performatives.Agent) string { return string(a.Organisation()) }

// reasons are the texts for the reasons of an ESCALATE.
var reasons = map[string]string{
	"authority-limit":      "Above the agent’s authority",
	"confidence-low":       "The agent is not confident",
	"policy-ambiguous":     "The policy is ambiguous",
	"adversarial-detected": "The agent suspects bad faith",

	performatives.Confirmation: "An agreement to confirm",
}

func reasonText(reason string) string {
	if text, ok := reasons[reason]; ok {
		return text
	}
	return render.Clean(reason)
}

// stamp parses a time of the broker.
func stamp(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

func iso(t time.Time) string { return performatives.FormatTime(t) }

// moment formats a time in UTC. With JavaScript, the browser shows it in the reader's
// time zone.
func moment(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04 UTC") }

// span formats a duration, to the second below an hour. static/clock.js formats it in
// the same way.
func span(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "−", -d
	}
	s := int64(d / time.Second)
	switch {
	case s < 3600:
		return fmt.Sprintf("%s%dm %02ds", sign, s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%s%dh %02dm", sign, s/3600, s/60%60)
	default:
		return fmt.Sprintf("%s%dd %02dh", sign, s/86400, s/3600%24)
	}
}

// age formats a duration to the minute.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}

// sentence capitalizes a message of the broker, unless it begins with a URI.
func sentence(s string) string {
	if first, _, _ := strings.Cut(s, " "); s == "" || strings.Contains(first, "://") {
		return s
	}
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[size:]
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// scripts are named if a principal's name has letters of them.
var scripts = []struct {
	name  string
	table *unicode.RangeTable
}{
	{"Latin", unicode.Latin}, {"Cyrillic", unicode.Cyrillic}, {"Greek", unicode.Greek}, {"Armenian", unicode.Armenian},
	{"Cherokee", unicode.Cherokee}, {"Hebrew", unicode.Hebrew}, {"Arabic", unicode.Arabic}, {"Han", unicode.Han},
	{"Hiragana", unicode.Hiragana}, {"Katakana", unicode.Katakana}, {"Hangul", unicode.Hangul}, {"Devanagari", unicode.Devanagari},
}

// letters names the scripts of a principal's letters, "" if all are plain Latin ones.
// A name with others can look like another name. Letters that only look Latin, such as
// full-width ones, are special.
func letters(a performatives.Agent) string {
	var found []string
	odd := false
	for _, r := range pathOf(a) {
		if !unicode.IsLetter(r) {
			continue
		}
		name := "other"
		for _, s := range scripts {
			if unicode.Is(s.table, r) {
				name = s.name
				break
			}
		}
		plain := name == "Latin" && (r < 0x250 || r >= 0x1e00 && r < 0x1f00) // with accents
		if name == "Latin" && !plain {
			name = "special"
		}
		if odd = odd || !plain; !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	if !odd {
		return ""
	}
	return strings.Join(found, " and ")
}
