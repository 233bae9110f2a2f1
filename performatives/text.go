package performatives

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// A Text is how an act reads to a person: one line that says what the act does,
// and what stands below that line. It has no layout: each page draws it in its
// own way.
type Text struct {
	Line  []Word
	Below []Part
}

// A Word is one piece of a line.
type Word struct {
	Kind WordKind
	// Lead stands before the word in a sentence, such as ", until ". One that
	// begins with a single space continues the word before it; any other begins
	// a fact of its own.
	Lead   string
	Name   string // what it is called in a list of names and values; "" leaves it out
	Text   string // the currency, of Money
	At     time.Time
	Amount float64
	Tone   Tone
}

// A WordKind tells what a word's value is.
type WordKind uint8

// The kinds of words.
const (
	Plain     WordKind = iota
	Subject            // what the act is about, in words
	OwnID              // the act's own id; where it begins a line, a space follows
	Reference          // the id of another thing
	Principal          // the URI of a principal
	Code               // one of a closed list, for machines
	Moment             // At
	Money              // Amount
)

// A Tone is how a word is meant.
type Tone uint8

// The tones.
const (
	Neutral Tone = iota
	Good
	Bad
	Warning
	Faint // a detail
)

// A Part is one thing below an act's first line: Prose, Data, Terms, Details,
// Asked or Answered.
type Part interface{ empty() bool }

type (
	// Prose is free text of the sender, under a name or none.
	Prose struct{ Name, Text string }
	// Data is any JSON value, under a name or none.
	Data struct {
		Name  string
		Value jsontext.Value
	}
	// Terms are what is offered, in full.
	Terms struct{ Value Object }
	// Details are a line of facts, about a principal where Of names one.
	Details struct {
		Of    Agent
		Words []Word
	}
	// Asked are the questions of a CLARIFY.
	Asked []Question
	// Answered are the answers of an INFORM.
	Answered []Answer
)

func (p Prose) empty() bool    { return p.Text == "" }
func (p Data) empty() bool     { return p.Value.Kind() == 0 || p.Value.Kind() == 'n' }
func (Terms) empty() bool      { return false }
func (p Details) empty() bool  { return len(p.Words) == 0 }
func (p Asked) empty() bool    { return len(p) == 0 }
func (p Answered) empty() bool { return len(p) == 0 }

// below leaves out the parts that say nothing.
func below(parts ...Part) []Part { return slices.DeleteFunc(parts, Part.empty) }

// words leaves out the words that say nothing, and separates the others.
func words(separator string, all ...Word) []Word {
	all = slices.DeleteFunc(all, func(w Word) bool { return w.Text == "" && w.At.IsZero() && w.Kind != Money })
	for i := range all[min(1, len(all)):] {
		all[i+1].Lead = separator + all[i+1].Lead
	}
	return all
}

// moment is a time that may be absent.
func moment(lead, name string, t *time.Time) Word {
	if t == nil {
		return Word{}
	}
	return Word{Kind: Moment, Lead: lead, Name: name, At: *t}
}

// faint marks all words as details.
func faint(all []Word) []Word {
	for i := range all {
		all[i].Tone = Faint
	}
	return all
}
