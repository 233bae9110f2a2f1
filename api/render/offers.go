package render

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
)

// offers compares each offer of a transcript with the one before it: the one that it
// replaces, else the newest of its type.
type offers struct {
	refs    map[string]ref
	newest  map[string]string // type → the newest offer of that type
	invites string            // the invitation in force
}

// A ref is what an id refers to.
type ref struct {
	id, typ, schema string
	entry           uint64
	terms           []leaf
	shown           bool // an approval without bounds is of exactly this
}

// A comparison is an offer's terms beside those of the offer before it.
type comparison struct {
	Before string // the id of the offer before; "" if there is none to compare with
	Entry  uint64 // the sequence number of the offer before
	Schema string // the terms schema of the offer
	Terms  []Term // those that differ, or all if there is none before
	Same   int    // the number of those that do not differ
}

// newOffers returns the offers of a transcript that begins.
func newOffers() *offers { return &offers{refs: map[string]ref{}, newest: map[string]string{}} }

// refer says which entry an id is of, as in p2 (#3); of a long id only #3, unless full.
func (o *offers) refer(id string, full bool) (text string, known bool) {
	r, known := o.refs[id]
	if !known {
		return "", false
	}
	entry := "#" + strconv.FormatUint(r.entry, 10)
	if full || len(id) <= shortID {
		return id + " (" + entry + ")", true
	}
	return entry, true
}

// add takes the next entry, and compares the offer that it makes.
func (o *offers) add(e transcript.Entry) comparison {
	body := e.Message.Body
	id := body.ID(e.Message.ID)
	offering, is := body.(performatives.Offering)
	if !is {
		o.note(ref{id: id, entry: e.Stamp.Sequence, shown: body.Act() == performatives.Commit && body.Refers() == ""})
		return comparison{}
	}
	offer, replaced := offering.Offer(), body.Refers()
	typ := cmp.Or(offer.Type, o.refs[replaced].typ)
	before := replaced
	if replaced == "" {
		before = o.newest[typ]
	}
	if replaced == "" && typ == performatives.SessionInvitation || replaced != "" && replaced == o.invites {
		o.invites = id
	}
	o.newest[typ] = id
	old, known := o.refs[before]
	r := ref{id, typ, cmp.Or(offer.Schema, o.refs[replaced].schema), e.Stamp.Sequence, flatten(offer.Terms), typ == performatives.Amendment}
	o.note(r)
	after, was := r.terms, old.terms
	if id == o.invites {
		after, was = readable(after), readable(was)
	}
	if !known || before == id || !overlap(was, after) {
		return comparison{Schema: r.schema, Terms: termsOf(after)}
	}
	c := comparison{Before: before, Entry: old.entry, Schema: r.schema}
	c.Terms, c.Same = differences(was, after)
	return c
}

func (o *offers) note(r ref) {
	if r.id != "" {
		o.refs[r.id] = r
	}
}

// overlap reports whether two offers have a term in common.
func overlap(a, b []leaf) bool {
	paths := map[string]bool{}
	for _, l := range a {
		paths[l.path] = true
	}
	return slices.ContainsFunc(b, func(l leaf) bool { return paths[l.path] })
}

// readable formats an invitation's terms for people: milliseconds as durations, and
// no participants, because the heading lists them.
func readable(terms []leaf) []leaf {
	var shown []leaf
	for _, l := range terms {
		switch l.path {
		case "participants":
			continue
		case "maxDuration", "invitationTimeoutMs":
			if ms, err := strconv.ParseInt(string(l.json), 10, 64); err == nil {
				l.json = jsontext.Value(strconv.Quote(milliseconds(ms)))
			}
		}
		shown = append(shown, l)
	}
	return shown
}
