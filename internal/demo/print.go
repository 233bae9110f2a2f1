package demo

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/transcript"
)

// A printer shows the scenes as they are played, and what came of them. It
// stops at the first error of its output.
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

// Inks, as render has them.
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

// prose prints a paragraph, and a blank line after it.
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

// defaultWidth is the widest that text is set, and render's own default.
const defaultWidth = 100

// opening says where the scenes are played.
func (p *printer) opening(s *stage) {
	if p.quiet {
		return
	}
	where := "a broker of its own at " + s.url + ": logins, signatures and fsync on, a fresh key for everybody"
	switch {
	case s.server != nil:
	case s.dev:
		where = "the broker at " + s.url + ": --dev, so without logins; every act is signed all the same"
	default:
		where = "the broker at " + s.url + ": a fresh key for everybody, every act signed"
	}
	p.prose("parley demo on " + where)
}

// scene shows a scene's title; the chat is for its entries.
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

// beside shows a remark of the demo's own, between two entries.
func (p *printer) beside(text string) {
	if !p.quiet {
		p.print("    " + p.ink(faint, "» "+text) + "\n")
	}
}

// end shows how a scene's session stands after it.
func (p *printer) end(chat *render.Chat, all played) {
	switch {
	case p.quiet:
	case all.err != nil:
		p.print("\n" + p.ink(red, "the scene broke off: "+render.Clean(all.err.Error())) + "\n\n")
	default:
		p.print(chat.End(all.view) + "\n")
	}
}

// summary shows what came of the scenes, and the verification of every
// transcript.
func (p *printer) summary(r *Report, o Options) {
	where := "The broker has stopped. With"
	if o.URL != "" {
		where = "The broker exported them. Here, with"
	}
	p.heading("Every transcript, verified offline")
	p.prose(where + " nothing but its public key " + string(r.Broker) +
		", each is checked: hashes and chain, receipts, every sender's signature, and a replay by the rules.")
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

// table lines columns up; the last one says yes or no.
func (p *printer) table(rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range rows {
		var line strings.Builder
		last := len(row) - 1
		for i, cell := range row[:last] {
			line.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		switch {
		case n == 0:
			p.print(p.ink(faint, line.String()+row[last]) + "\n")
		case row[last] == "yes":
			p.print(line.String() + p.ink(green, row[last]) + "\n")
		default:
			p.print(line.String() + p.ink(red, row[last]) + "\n")
		}
	}
}

// short is the part of a session's id that tells sessions of one day apart: the
// time in it.
func short(id string) string {
	const timed = len("019478a3-7b2c")
	if len(id) <= timed {
		return id
	}
	return id[:timed] + "…"
}
