package escalation

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/internal/ijson"
	"github.com/parley-asp/parley/performatives"
)

// A Bound limits what a side may agree to after a ruling, until the next approval
// (PROTOCOL.md §7).
type Bound struct {
	performatives.RulingsAuthority
	Escalation ID
	Amounts    []string           // paths to search for the amount if there is no termPath
	Strict     bool               // without any path, no amount in the terms may be more; no path means two places
	Escrow     *Amount            // the most that exact terms leave to an escrow, where no bound limits money; nil is anything
	Shown      performatives.Hash // what was approved as it was at stake: the terms of a proposal, or what a commitment says
	Denied     []Denial           // since the last approval
	Thread     *Thread            // that it is narrowed to; nil is the whole session
	Else       *Bound             // what holds outside of the thread; nil is nothing
	Sealed     bool               // for the other sides
	Unopened   bool               // sealed, and its part is not here: nobody here knows what it allows
	Ceilings   []Grant            // of each human with a ceiling who granted it
	Frame      *Frame             // of the proposal whose exact terms were approved; nil is any
	Only       *Exact             // what was approved as it was shown, where no proposal is at stake; nil is anything
}

// A Grant is what a human with a ceiling has granted, and what she approved as it was at stake.
type Grant struct {
	performatives.RulingsAuthority
	Shown performatives.Hash // "" if nothing
}

// A Thread is the offers of one type and subject between the same sides, and what counters
// one of them.
type Thread struct {
	Type    string `json:"type"`
	Subject string `json:"subject"`
	Line    string `json:"-"` // of counters
	Between string `json:"-"` // "" is everybody
}

// Meets reports whether two threads are one, as far as can be told.
func (t Thread) Meets(o Thread) bool {
	return t.Line == o.Line || t.Type == o.Type && t.Subject == o.Subject && (t.Between == "" || o.Between == "" || t.Between == o.Between)
}

// For is the bound that holds for a pledge; nil is none. A pledge of which no thread can be
// told may be about any.
func (b *Bound) For(p Pledge) *Bound {
	for ; b != nil; b = b.Else {
		if b.Thread == nil || len(p.Threads) == 0 || slices.ContainsFunc(p.Threads, b.Thread.Meets) {
			return b
		}
	}
	return nil
}

// Without is a bound, and what holds outside of its thread, without that of a thread; nil is
// nothing.
func (b *Bound) Without(t Thread) *Bound {
	switch {
	case b == nil:
		return nil
	case b.Thread != nil && b.Thread.Meets(t):
		return b.Else.Without(t)
	}
	rest := *b
	rest.Denied, rest.Else = nil, b.Else.Without(t)
	return &rest
}

// A Denial is what a human has denied.
type Denial struct {
	Escalation ID                 `json:"escalationId"`
	Offer      string             `json:"referenceId"` // the offer that was at stake
	Terms      performatives.Hash `json:"-"`           // of a proposal
	// CommitmentTerms are those of a commitment, or of an amendment of one.
	CommitmentTerms performatives.Hash `json:"-"`
}

// A Pledge is what an act offers or agrees to.
type Pledge struct {
	Bodies []jsontext.Value   // of the offers, the act's own among them
	Escrow jsontext.Value     // the body of a commitment, whose escrow is an amount too
	Offers []string           // ids of the offers that it agrees to
	Terms  performatives.Hash // of the proposal's terms; "" if there is no proposal

	// Of a new act, and not of a replayed one (session/format.go):
	Side            performatives.Agent // who offers or agrees
	Commitment      jsontext.Value      // the body of a commitment, or of an amendment of one
	CommitmentTerms performatives.Hash  // of its terms, deadline and escrow
	Frame           *Frame              // of the proposal; nil if there is none
	Opened, At      time.Time           // of the session, and of the act

	Threads []Thread // that it is in
}

// An Excess is what exceeds a bound.
type Excess struct {
	Amount *Amount                     // nil if none can be read
	Path   string                      // where
	Bound  *performatives.RulingsBound // of authority.bounds; nil of the single form
	Why    string
}

// Expired reports whether the authority has ended at a time.
func (b *Bound) Expired(at time.Time) bool { return b.ValidUntil != nil && !at.Before(*b.ValidUntil) }

// SaysHowMuch reports whether the bound is in force and limits money, or allows exact terms.
func (b *Bound) SaysHowMuch(at time.Time) bool {
	return b != nil && !b.Expired(at) && (b.TermsHash != "" || slices.ContainsFunc(b.limits(), limit.money))
}

// Denies finds the denial of what a pledge agrees to. A pledge that names no offer
// cannot be told from what was denied.
func (b *Bound) Denies(p Pledge) (Denial, bool) {
	for _, d := range b.Denied {
		if len(p.Offers) == 0 || d.Terms != "" && d.Terms == p.Terms || d.CommitmentTerms != "" && d.CommitmentTerms == p.CommitmentTerms {
			return d, true
		}
		if p.Escrow != nil && p.Terms == "" && p.Side != "" { // a commitment that names no proposal
			return d, true
		}
		for _, id := range p.Offers {
			if id == d.Offer {
				return d, true
			}
		}
	}
	return Denial{}, false
}

// A limit is one bound with the paths that it applies to.
type limit struct {
	performatives.RulingsBound
	paths      []string
	single     bool
	strict     bool
	everywhere bool
	exact      bool // equal numbers have the same digits, and texts that are no amounts the same characters
}

// money reports whether the limit is the upper one of an amount of money.
func (l limit) money() bool { return l.single || l.Max != nil && l.Currency != "" }

func (b *Bound) limits() []limit {
	all := limitsOf(&b.RulingsAuthority)
	for i := range all {
		all[i].strict = b.Strict
		if all[i].TermPath == "" {
			all[i].paths = b.Amounts
			all[i].everywhere = b.Strict && len(b.Amounts) == 0
		}
	}
	return all
}

// limitsOf are the single form and the list alike.
func limitsOf(a *performatives.RulingsAuthority) []limit {
	var all []limit
	if a.MaxAmount != nil {
		all = append(all, limit{single: true, RulingsBound: performatives.RulingsBound{TermPath: a.TermPath, Max: a.MaxAmount, Currency: a.Currency}})
	}
	for _, bound := range a.Bounds {
		all = append(all, limit{RulingsBound: bound})
	}
	for i := range all {
		if all[i].TermPath != "" {
			all[i].paths = []string{all[i].TermPath}
		}
	}
	return all
}

// Names reports whether an offer's body names what is bound. Exact terms bind
// every offer. Since format 3 of transcripts every bound does.
func (b *Bound) Names(body jsontext.Value) bool {
	var v any
	if b.TermsHash != "" || json.Unmarshal(body, &v) != nil {
		return true
	}
	for _, l := range b.limits() {
		if l.in(v) {
			return true
		}
	}
	return false
}

func (l limit) in(v any) bool {
	paths := l.paths
	if len(paths) == 0 {
		paths = usualPaths
	}
	for _, path := range paths {
		if _, _, ok := lookUp(v, &path); ok {
			return true
		}
	}
	return false
}

// Exceeded returns what in a pledge exceeds the bound, nil if nothing does. What
// cannot be read exceeds it.
func (b *Bound) Exceeded(p Pledge) *Excess {
	if b.Only != nil && p.Side != "" && (p.CommitmentTerms != b.Only.Terms || !slices.Contains(p.Offers, b.Only.Offer)) {
		return &Excess{Why: "this is not " + strconv.Quote(b.Only.Offer) + ", which was shown to the human"}
	}
	if b.TermsHash != "" && p.Terms != b.TermsHash {
		return &Excess{Why: "these are not the terms that were shown to the human"}
	}
	if b.TermsHash != "" && b.Frame != nil && p.Frame != nil {
		if name := p.Frame.Differs(b.Frame, p.Opened, p.At); name != "" {
			return &Excess{Path: name, Why: "the " + name + " is not as was shown to the human"}
		}
	}
	if b.exactEscrow() {
		l := limit{RulingsBound: performatives.RulingsBound{Max: &b.Escrow.Value, Currency: b.Escrow.Code()}, strict: b.Strict}
		if _, excess := l.escrow(p); excess != nil {
			return excess
		}
	}
	for _, l := range b.limits() {
		if excess := l.exceeded(p); excess != nil {
			if !l.single {
				excess.Bound = &l.RulingsBound
			}
			return excess
		}
	}
	return b.binds(p)
}

// exactEscrow reports whether exact terms alone limit the escrow of a commitment, which they
// do not name.
func (b *Bound) exactEscrow() bool {
	return b.TermsHash != "" && b.Escrow != nil && !slices.ContainsFunc(b.limits(), limit.money)
}

func (l limit) exceeded(p Pledge) *Excess {
	seen := false
	l.exact = p.Side != ""
	for _, body := range p.Bodies {
		var v any
		if json.Unmarshal(body, &v) != nil || !l.in(v) {
			continue
		}
		seen = true
		if excess := l.exceededIn(v, l.paths); excess != nil {
			return excess
		}
	}
	if l.everywhere {
		for _, body := range p.Bodies {
			var v any
			if json.Unmarshal(body, &v) == nil {
				if excess := l.exceededBy(amountsAnywhere(v)); excess != nil {
					return excess
				}
			}
		}
	}
	if l.money() {
		has, excess := l.escrow(p)
		if excess != nil {
			return excess
		}
		seen = seen || has
	}
	if !seen {
		return &Excess{Path: l.TermPath, Why: "what it comes to cannot be seen at " + cmp.Or(l.TermPath, "any of the usual places") + ": " + Readable}
	}
	return nil
}

// escrow judges the escrow of a commitment, if it has one.
func (l limit) escrow(p Pledge) (has bool, excess *Excess) {
	var commitment any
	if json.Unmarshal(p.Escrow, &commitment) != nil {
		return false, nil
	}
	if _, _, has = performatives.Find(commitment, "escrow"); !has {
		return false, nil
	}
	return true, l.exceededIn(commitment, []string{"escrow"})
}

func (l limit) exceededIn(v any, paths []string) *Excess {
	if l.Equals != nil {
		return l.differs(v)
	}
	return l.exceededBy(amounts(v, paths, l.strict))
}

func (l limit) exceededBy(found []Amount, unread string) *Excess {
	for _, a := range found {
		other := a.Currency != "" && l.Currency != "" && !strings.EqualFold(a.Currency, l.Currency)
		if other || l.Max != nil && a.Value > *l.Max || l.Min != nil && a.Value < *l.Min {
			return &Excess{Amount: &a, Path: a.Path, Why: "it says " + Money(a.Value, a.Currency) + " at " + a.Path}
		}
	}
	if unread != "" {
		return &Excess{Path: unread, Why: "what stands at " + unread + " cannot be read: " + Readable}
	}
	return nil
}

// differs compares what stands at the path with the only value that is allowed.
// Amounts are compared as such.
func (l limit) differs(v any) *Excess {
	path := l.TermPath
	if l.strict && meanings(v, path) > 1 {
		return &Excess{Path: path, Why: path + " can mean two places in it"}
	}
	at, in, _ := lookUp(v, &path)
	var only any
	if json.Unmarshal(l.Equals, &only) == nil && reflect.DeepEqual(at, only) && l.Currency == "" {
		return nil
	}
	a, readable := amountOf(at, in, v, path)
	if value, isNumber := number(only); isNumber && readable && a.Value == value && (!l.exact || l.same(at, a.Path, only)) &&
		(a.Currency == "" || l.Currency == "" || strings.EqualFold(a.Currency, l.Currency)) {
		return nil
	}
	excess := &Excess{Path: path, Why: "it says something else at " + path}
	if readable {
		excess.Amount = &a
	}
	return excess
}

// same reports whether a readable amount at a path is the only one that is allowed. A text of digits that is no amount, such as the
// number of an account, is compared as a text: there, zeros at its start count, and 20 digits are no longer those of a double.
func (l limit) same(at any, path string, only any) bool {
	if object, is := at.(map[string]any); is {
		name, _ := sum(object)
		at = object[name]
	}
	if _, is := only.(string); is && l.Currency == "" && !namesAmount(path[strings.LastIndexByte(path, '.')+1:]) {
		return at == only
	}
	return ijson.SameDecimal(digits(at), digits(only))
}

func (b *Bound) String() string {
	var all []string
	if b.MaxAmount != nil {
		most := "up to " + Money(*b.MaxAmount, b.Currency)
		if b.TermPath != "" {
			most += " at " + b.TermPath
		}
		all = append(all, most)
	}
	for _, bound := range b.Bounds {
		all = append(all, bound.String())
	}
	if b.TermsHash != "" {
		all = append(all, "exactly the terms that were shown")
		if b.exactEscrow() && b.Escrow.Value > 0 {
			all = append(all, "an escrow of at most "+Money(b.Escrow.Value, b.Escrow.Currency))
		} else if b.exactEscrow() {
			all = append(all, "no escrow")
		}
	}
	if b.Only != nil {
		all = append(all, "exactly "+strconv.Quote(b.Only.Offer)+" as it was shown")
	}
	if b.ValidUntil != nil {
		all = append(all, "until "+b.ValidUntil.UTC().Format(time.RFC3339))
	}
	if b.Thread != nil {
		all = append(all, "in the thread of "+b.Thread.Type+" "+strconv.Quote(b.Thread.Subject))
	}
	return strings.Join(all, ", ")
}
