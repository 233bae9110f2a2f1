package inbox

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
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
	return clipped(render.Clean(strings.Join(strings.Fields(s), " ")), 241)
}

// brief formats text for a form.
func brief(s string) string { return clipped(oneLine(s), 81) }

// clipped cuts text that is longer than a number of characters.
func clipped(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
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
	name := clipped(oneLine(i.NameOf(a)), maxName+1)
	if name == "" || strings.EqualFold(name, path[strings.LastIndexByte(path, '/')+1:]) {
		return path
	}
	return name + " (" + path + ")"
}

// name is the same in a sentence.
func (i *Inbox) name(a performatives.Agent) render.Span { return render.Span{Text: i.called(a)} }

func organisation(a performatives.Agent) string { return string(a.Organisation()) }

// stamp parses a time of the broker.
func stamp(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

func iso(t time.Time) string { return performatives.FormatTime(t) }

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

var amounts = regexp.MustCompile(`\b([A-Z]{3}) (−?[0-9])`)

// together keeps the currency, and so the minus, of each amount of a text on the line of its number.
func together(text string) template.HTML {
	return template.HTML(amounts.ReplaceAllString(template.HTMLEscapeString(text), "$1&nbsp;$2")) // escaped
}

// figures is a text of package amount, whose spaces that do not break stay what they are.
func figures(text string) template.HTML {
	return template.HTML(strings.ReplaceAll(template.HTMLEscapeString(text), "\u00a0", "&nbsp;")) // escaped
}

var principals = regexp.MustCompile(`\b(?:agent|human)://([a-z0-9.-]+)/([^\s,;:"”)]*[^\s,;:."”)])`)

// sentence capitalizes a message of the broker, and names principals as people do. static/requests.js does so
// in the same way.
func sentence(s string) string {
	named := principals.ReplaceAllString(s, "$2 of $1")
	if first, _, _ := strings.Cut(s, " "); s == "" || strings.Contains(first, "://") {
		return named
	}
	r, size := utf8.DecodeRuneInString(named)
	return string(unicode.ToUpper(r)) + named[size:]
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
