// Package amount understands amounts as people type them, and says how it understood them.
//
//	asked := amount.Asked{Typed: "1.900", Currency: "EUR", Money: true}
//	amount.Of("de").Read(asked).Understood // one thousand nine hundred euros: 1.900,00 EUR
//	amount.Of("en").Read(asked).Choices    // 1,900.00 EUR, and 1.90 EUR
//
// It guesses nothing: what can be read in two ways is two readings, and what is missing is named. It is
// exact: no number passes through a float.
package amount

import (
	"cmp"
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

// A Decimal is an exact decimal in its shortest form, such as "1900" or "-0.5".
type Decimal string

// maxDigits is the number of digits that every reader of JSON keeps.
const maxDigits = 15

var decimals = regexp.MustCompile(`^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$`)

// Parse reads a decimal as JSON has it; ok is false for anything else.
func Parse(text string) (d Decimal, ok bool) {
	if !decimals.MatchString(text) {
		return "", false
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return "", false
	}
	return shortest(r.FloatString(140)), true // 40 digits after the point, moved by up to 99
}

// shortest drops zeros that say nothing.
func shortest(text string) Decimal {
	minus := strings.HasPrefix(text, "-")
	whole, part, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	whole, part = cmp.Or(strings.TrimLeft(whole, "0"), "0"), strings.TrimRight(part, "0")
	if part != "" {
		whole += "." + part
	}
	if minus && whole != "0" {
		whole = "-" + whole
	}
	return Decimal(whole)
}

// digits counts those of a decimal that are not leading or trailing zeros of a whole number.
func (d Decimal) digits() int {
	return len(strings.TrimLeft(strings.NewReplacer("-", "", ".", "").Replace(string(d)), "0"))
}

func (d Decimal) rat() *big.Rat {
	r, ok := new(big.Rat).SetString(string(d))
	if !ok {
		return new(big.Rat)
	}
	return r
}

// Compare is -1, 0 or +1, as d is less than, equal to or greater than other.
func (d Decimal) Compare(other Decimal) int { return d.rat().Cmp(other.rat()) }

// An Asked is what somebody typed, and what the field is for.
type Asked struct {
	Typed    string
	Exact    Decimal // the value, where it is known; Typed does not count then
	Currency string  // of the field beside it; "" for none
	Money    bool    // it needs a currency
	Label    string  // of what; "" for the amount
	Rule     string  // what the number is: max, min or equals; "" asks for no comparison

	Stake         Decimal // what is at stake; "" for nothing
	StakeCurrency string
	Min, Max      Decimal // what the terms allow; "" is anything
	Step          Decimal // of which it is a multiple; "" is any
}

// A Reading is one way to read it.
type Reading struct {
	Value      Decimal `json:"value,omitzero"`
	Currency   string  `json:"currency,omitzero"`
	Shown      string  `json:"shown,omitzero"`      // as the reader's language writes it: 1,900.00 EUR
	Understood string  `json:"understood,omitzero"` // in words and as Shown
}

// An Answer is the one reading, or why there is none.
type Answer struct {
	Reading
	Choices []Reading `json:"choices,omitzero"` // the readings, where there are several
	Missing string    `json:"missing,omitzero"` // what is missing: currency, or number
	Fault   string    `json:"fault,omitzero"`   // why it is none; also for choices and what is missing
	Doubts  []string  `json:"doubts,omitzero"`  // what somebody should look at before they sign
}

func fault(format string, about ...any) Answer { return Answer{Fault: fmt.Sprintf(format, about...)} }

// Read understands what was typed.
func (l Locale) Read(a Asked) Answer {
	values, written, problem := []Decimal{a.Exact}, []string(nil), ""
	if a.Exact == "" {
		values, written, problem = l.parse(a.Typed, a.StakeCurrency)
	}
	if problem != "" {
		return Answer{Fault: problem, Missing: missing(a.Typed)}
	}
	codes, problem := a.currencies(written)
	if problem != "" {
		return Answer{Fault: problem}
	}
	var all []Reading
	for _, v := range values {
		if v.digits() > maxDigits {
			return fault("This number has more than %d digits.", maxDigits)
		}
		for _, code := range codes {
			all = append(all, l.reading(v, code))
		}
	}
	if len(all) > 1 {
		shown := make([]string, len(all))
		for n, r := range all {
			shown[n] = r.Shown
		}
		return Answer{Choices: all, Fault: "Which one do you mean: " + strings.Join(shown, " or ") + "?"}
	}
	return l.judge(a, all[0])
}

func missing(typed string) string {
	if strings.TrimSpace(typed) == "" {
		return "number"
	}
	return ""
}

// currencies are those that may be meant: of what was written, the field's if it is among them.
func (a *Asked) currencies(written []string) (codes []string, problem string) {
	field := strings.ToUpper(strings.TrimSpace(a.Currency))
	if field != "" && !known(field, a.StakeCurrency) {
		return nil, fmt.Sprintf("“%s” is no currency. A currency has three letters, such as EUR.", field)
	}
	if len(written) == 0 {
		return []string{field}, ""
	}
	for _, code := range written {
		if code == field {
			return []string{field}, ""
		}
	}
	if field != "" {
		return append(written[:len(written):len(written)], field), ""
	}
	return written, ""
}

// judge compares the one reading with what the field takes, and with what is at stake.
func (l Locale) judge(a Asked, r Reading) Answer {
	says := Answer{Reading: r}
	show := func(d Decimal) string { return l.shown(d, "") }
	switch {
	case a.Money && r.Currency == "":
		return Answer{Reading: Reading{Value: r.Value, Shown: r.Shown}, Missing: "currency", Fault: "The currency is missing: " + r.Shown + " of what? Enter it, such as EUR."}
	case a.Min != "" && r.Value.Compare(a.Min) < 0:
		return fault("The terms want at least %s here.", show(a.Min))
	case a.Max != "" && r.Value.Compare(a.Max) > 0:
		return fault("The terms want at most %s here.", show(a.Max))
	case a.Step != "" && a.Step.rat().Sign() > 0 && !new(big.Rat).Quo(r.Value.rat(), a.Step.rat()).IsInt():
		return fault("The terms want a multiple of %s here.", show(a.Step))
	}
	if a.Stake != "" {
		says.Doubts = l.doubts(a, r)
	} else if r.Value.rat().Sign() < 0 {
		says.Doubts = []string{"This is below zero: " + r.Shown + "."}
	}
	return says
}

// doubts are what differs from what is at stake in a way that may be a slip.
func (l Locale) doubts(a Asked, r Reading) (all []string) {
	stake := l.reading(a.Stake, a.StakeCurrency).Shown
	name := strings.TrimSpace(a.Label + " " + r.Shown)
	v, s := r.Value.rat(), a.Stake.rat()
	if v.Sign() < 0 && s.Sign() >= 0 {
		all = append(all, "This is below zero: "+name+".")
	}
	if a.StakeCurrency != "" && r.Currency != a.StakeCurrency {
		return append(all, "The amount that was asked for is in "+a.StakeCurrency+": "+stake+".")
	}
	ten := big.NewRat(10, 1)
	size, at := new(big.Rat).Abs(v), new(big.Rat).Abs(s)
	switch {
	case at.Sign() > 0 && size.Cmp(new(big.Rat).Mul(at, ten)) >= 0:
		all = append(all, "This is ten times what was asked for, or more: "+name+", not "+stake+".")
	case at.Sign() > 0 && new(big.Rat).Mul(size, ten).Cmp(at) <= 0:
		all = append(all, "This is a tenth of what was asked for, or less: "+name+", not "+stake+".")
	case a.Rule == "min" && v.Cmp(s) < 0:
		all = append(all, "This allows less than was asked for: "+name+", not "+stake+".")
	case (a.Rule == "max" || a.Rule == "equals") && v.Cmp(s) > 0:
		all = append(all, "This allows more than was asked for: "+name+", not "+stake+".")
	}
	return all
}
