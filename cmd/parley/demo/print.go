package demo

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/session/transcript"
)

// A printer prints the scenes as they are played, and their results. It stops at
// the first output error.
type printer struct {
	out   io.Writer
	style render.Style
	quiet bool
	err   error
}

func newPrinter(o Options) *printer {
	p := &printer{out: o.Out, style: o.Style, quiet: o.Quiet}
	if p.out == nil {
		p.out = io.Discard
	}
	return p
}

func (p *printer) print(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.out, text)
	}
}

// ANSI attributes, as in package render.
const (
	strong = "1"
	faint  = "2"
	green  = "32"
	red    = "31"
)

func (p *printer) ink(ink, text string) string {
	if !p.style.Colour {
		return text
	}
	return "\x1b[" + ink + "m" + text + "\x1b[0m"
}

func (p *printer) heading(text string) { p.print(p.ink(strong, "━━ "+text) + "\n") }

// prose prints a paragraph and a blank line.
func (p *printer) prose(text string) {
	width := defaultWidth
	if p.style.Width > 0 {
		width = min(width, p.style.Width)
	}
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line+" "+word) > width {
			p.print(line + "\n")
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	p.print(line + "\n\n")
}

// defaultWidth is the maximum width of prose, and render's default.
const defaultWidth = 100

// opening prints which broker the scenes are played on.
func (p *printer) opening(s *stage) {
	if p.quiet {
		return
	}
	where := "its own broker at " + s.url + ": logins, signatures and fsync on, fresh keys"
	switch {
	case s.http != "":
		over := map[string]string{HTTP: "HTTP at " + s.http, MCP: "MCP at " + s.http + mcpPath, A2A: "A2A at " + s.http + a2aPath, MACP: "MACP at " + s.macp}
		where = "the broker at " + s.url + ", over " + over[s.face] + ": hosted agents with tokens, a human with a key"
	case s.server != nil:
	case s.dev:
		where = "the broker at " + s.url + ": --dev, so no logins; every act is signed anyway"
	default:
		where = "the broker at " + s.url + ": fresh keys, every act signed"
	}
	p.prose("parley demo on " + where)
}

// scene prints a scene's title, and returns the chat for its entries.
func (p *printer) scene(sc *scene, number int) *render.Chat {
	if !p.quiet {
		p.heading(strconv.Itoa(number) + ". " + sc.title)
		p.prose(sc.shows)
	}
	return render.NewChat(p.style)
}

func (p *printer) entry(chat *render.Chat, e transcript.Entry) {
	if !p.quiet {
		p.print(chat.Add(e))
	}
}

// remark prints a remark between two entries.
func (p *printer) remark(text string) {
	if !p.quiet {
		p.print("    " + p.ink(faint, "» "+text) + "\n")
	}
}

// end prints the state of a scene's session at its end.
func (p *printer) end(chat *render.Chat, all played) {
	switch {
	case p.quiet:
	case all.err != nil:
		p.print("\n" + p.ink(red, "the scene failed: "+render.Clean(all.err.Error())) + "\n\n")
	default:
		p.print(chat.End(all.view) + "\n")
	}
}

// summary prints the results, and the verification of every transcript.
func (p *printer) summary(r *Report, o Options) {
	where := "The broker has stopped. Using"
	if o.URL != "" || o.Open != nil {
		where = "The broker exported them. Using"
	}
	p.heading("Every transcript, verified offline")
	p.prose(where + " only its public key " + string(r.Broker) +
		", this checks each transcript's hashes, chain, receipts and signatures, and replays it against the rules.")
	rows := [][]string{{"PATTERN", "SESSION", "MESSAGES", "STATE", "OUTCOME", "VERIFIED"}}
	for i, s := range r.Scenes {
		verified := "yes"
		if !s.Verified {
			verified = "NO"
		}
		rows = append(rows, []string{
			strconv.Itoa(i+1) + " " + s.Title, short(string(s.Session)), strconv.Itoa(s.Messages), s.State.String(), s.Outcome, verified,
		})
	}
	p.table(rows)
	for i, s := range r.Scenes {
		for _, fault := range s.Faults {
			p.print(p.ink(red, fmt.Sprintf("%d %s: %s", i+1, s.Title, render.Clean(fault))) + "\n")
		}
	}
}

// table aligns columns and colours the last one, yes or no.
func (p *printer) table(rows [][]string) {
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for n, row := range rows {
		if last := len(row) - 1; n > 0 {
			row[last] = p.ink(map[bool]string{true: green, false: red}[row[last] == "yes"], row[last])
		}
		fmt.Fprintln(columns, strings.Join(row, "\t")) //nolint:errcheck // a Builder takes it
	}
	columns.Flush() //nolint:errcheck // the same
	head, rest, _ := strings.Cut(text.String(), "\n")
	p.print(p.ink(faint, head) + "\n" + rest)
}

// short returns the timestamp of a session's UUIDv7.
func short(id string) string {
	const timed = len("019478a3-7b2c")
	if len(id) <= timed {
		return id
	}
	return id[:timed] + "…"
}
