package amount

import (
	"strings"

	"golang.org/x/text/currency"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/number"
)

// A Locale is how a reader's language writes numbers.
type Locale struct {
	group, decimal string
	indian         bool // 12,34,567
}

// Of is the locale of an Accept-Language header (RFC 9110 §12.5.4): the first language that is known, else
// English.
func Of(accept string) Locale {
	tag := language.English
	if tags, _, err := language.ParseAcceptLanguage(accept); err == nil && len(tags) > 0 && tags[0] != language.Und {
		tag = tags[0]
	}
	if latin, err := tag.SetTypeForKey("nu", "latn"); err == nil {
		tag = latin
	}
	// 1234567.5 as CLDR has it: between 1 and 2 stands a separator of groups, or of lakhs after the 2.
	sample := []rune(message.NewPrinter(tag).Sprint(number.Decimal(1234567.5)))
	l := Locale{group: ",", decimal: "."}
	if len(sample) < 9 {
		return l
	}
	l.decimal = string(sample[len(sample)-2])
	if l.indian = sample[1] == '2'; l.indian {
		l.group = string(sample[2])
	} else {
		l.group = string(sample[1])
	}
	if l.group == "’" {
		l.group = "'" // as keyboards have it
	}
	return l
}

// noBreak stands between a number and its currency, and groups where a language has spaces.
const noBreak = "\u00a0"

// reading words a value.
func (l Locale) reading(v Decimal, code string) Reading {
	shown := l.shown(v, code)
	return Reading{v, code, shown, inWords(v, code) + ": " + shown}
}

// shown is a value as the locale writes it, with at least the decimals of its currency.
func (l Locale) shown(v Decimal, code string) string {
	text, minus := strings.CutPrefix(string(v), "-")
	whole, part, _ := strings.Cut(text, ".")
	if code != "" {
		part += strings.Repeat("0", max(0, scale(code)-len(part)))
	}
	var groups []string
	for size := 3; len(whole) > size; {
		groups = append([]string{whole[len(whole)-size:]}, groups...)
		whole = whole[:len(whole)-size]
		if l.indian {
			size = 2
		}
	}
	text = strings.Join(append([]string{whole}, groups...), l.group)
	if part != "" {
		text += l.decimal + part
	}
	if minus {
		text = "−" + text
	}
	if code != "" {
		text += noBreak + code
	}
	return text
}

// scale is how many decimals a currency has (ISO 4217).
func scale(code string) int {
	unit, err := currency.ParseISO(code)
	if err != nil {
		return 0
	}
	decimals, _ := currency.Standard.Rounding(unit)
	return decimals
}

// known reports whether a code names a currency: one of ISO 4217, or the one at stake.
func known(code, stake string) bool {
	if code == stake && len(code) == 3 {
		return true
	}
	unit, err := currency.ParseISO(code)
	return err == nil && unit.String() == code
}
