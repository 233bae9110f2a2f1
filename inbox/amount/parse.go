package amount

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/width"
)

// maxTyped is the longest text that is read, in bytes.
const maxTyped = 240

// written are the signs and names of currencies, with those that may be meant.
var written = map[string][]string{
	"€": {"EUR"}, "euro": {"EUR"}, "euros": {"EUR"},
	"$": {"USD", "CAD", "AUD"}, "dollar": {"USD", "CAD", "AUD"}, "dollars": {"USD", "CAD", "AUD"}, "us$": {"USD"}, "c$": {"CAD"}, "ca$": {"CAD"}, "a$": {"AUD"}, "au$": {"AUD"}, "r$": {"BRL"},
	"£": {"GBP"}, "pound": {"GBP"}, "pounds": {"GBP"}, "franc": {"CHF"}, "francs": {"CHF"}, "fr": {"CHF"}, "sfr": {"CHF"},
	"¥": {"JPY", "CNY"}, "yen": {"JPY"}, "yuan": {"CNY"}, "₹": {"INR"}, "rupee": {"INR"}, "rupees": {"INR"},
	"kr": {"SEK", "NOK", "DKK"}, "zł": {"PLN"}, "zloty": {"PLN"},
}

// scales are the words that multiply, as powers of ten. An m is a thousand to some, a million to others.
var scales = map[string][]int{
	"k": {3}, "thousand": {3}, "tsd": {3}, "lakh": {5}, "lakhs": {5}, "m": {6, 3}, "mm": {6}, "mn": {6}, "mio": {6}, "mln": {6}, "million": {6}, "millions": {6},
	"crore": {7}, "crores": {7}, "bn": {9}, "billion": {9}, "billions": {9},
}

var (
	numeral = regexp.MustCompile(`[.,]?[0-9](?:[0-9.,'_ ]*[0-9])?(?:[.,]-?)?`)
	token   = regexp.MustCompile(`\p{L}*\p{Sc}|\p{L}+`)
	signs   = strings.NewReplacer("\u00a0", " ", "\u202f", " ", "\u2009", " ", "\t", " ", "−", "-", "–", "-", "—", "-", "’", "'", "ʼ", "'", "‘", "'")
)

// parse reads a text: the values that it may be, and the currencies that it may name.
func (l Locale) parse(typed, stake string) (values []Decimal, currencies []string, problem string) {
	text := strings.TrimSpace(signs.Replace(width.Fold.String(typed)))
	if text == "" {
		return nil, nil, "Enter a number."
	}
	if len(typed) > maxTyped {
		return nil, nil, "This is too long for an amount."
	}
	minus := false
	if inner, in := strings.CutPrefix(text, "("); in && strings.HasSuffix(inner, ")") {
		text, minus = strings.TrimSuffix(inner, ")"), true // as accountants write it
	}
	before, digits, after := text, "", ""
	if at := numeral.FindStringIndex(text); at != nil {
		before, digits, after = text[:at[0]], text[at[0]:at[1]], text[at[1]:]
		digits = strings.TrimSuffix(digits, "-") // 1900,- has no cents
	}
	if before = strings.TrimSpace(before); strings.HasPrefix(before, "-") || strings.HasSuffix(before, "-") && digits != "" {
		minus, before = true, strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(before, "-"), "-"))
	}
	if digits != "" && strings.Contains(before+after, "-") {
		return nil, nil, "A minus stands before the number, such as -5."
	}
	powers := []int{0}
	var words []string
	if digits == "" {
		before = strings.ReplaceAll(before, "-", " ") // twenty-five
	}
	for _, w := range append(parts(before), parts(after)...) {
		low := strings.ToLower(w)
		named, isCurrency := written[low]
		switch code := strings.ToUpper(w); {
		case digits != "" && scales[low] != nil && len(powers) == 1 && powers[0] == 0:
			powers = scales[low]
		case isCurrency && currencies == nil:
			currencies = named
		case len(w) == 3 && known(code, stake) && currencies == nil && !slices.Contains(units, low):
			currencies = []string{code}
		case digits == "" && w != "":
			if low == "minus" && words == nil {
				minus = true
				continue
			}
			words = append(words, low)
		default:
			return nil, nil, fmt.Sprintf("“%s” is not understood as part of an amount. Write a number and a currency, such as 1900 EUR.", w)
		}
	}
	if digits == "" {
		n, ok := ofWords(words)
		if !ok {
			return nil, nil, "This is not understood as a number. Write it in digits, such as 1900."
		}
		digits = n
	}
	for _, v := range l.numbers(digits) {
		for _, power := range powers {
			values = append(values, signed(shift(v, power), minus))
		}
	}
	if len(values) == 0 {
		return nil, nil, fmt.Sprintf("“%s” is not understood as a number: its groups do not have three digits.", digits)
	}
	return values, currencies, ""
}

// parts splits the text around a number. What is neither a word nor a sign of a currency is a part of its
// own, which nothing understands.
func parts(text string) (all []string) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' }) {
		word = strings.TrimSuffix(word, ".") // Fr. and Mio.
		if found := token.FindAllString(word, -1); strings.Join(found, "") == word {
			all = append(all, found...)
		} else {
			all = append(all, word)
		}
	}
	return all
}

func signed(v Decimal, minus bool) Decimal {
	if minus && v != "0" {
		return "-" + v
	}
	return v
}

// shift multiplies by a power of ten.
func shift(v Decimal, power int) Decimal {
	whole, part, _ := strings.Cut(string(v), ".")
	part += strings.Repeat("0", max(0, power-len(part)))
	return shortest(whole + part[:power] + "." + part[power:])
}

// numbers are the values that digits with separators may be. Where the language of the reader groups so,
// there is one.
func (l Locale) numbers(digits string) (all []Decimal) {
	for _, decimal := range []string{"", ".", ","} {
		whole, part := digits, ""
		if decimal != "" {
			if strings.Count(digits, decimal) != 1 {
				continue
			}
			if whole, part, _ = strings.Cut(digits, decimal); strings.Trim(part, "0123456789") != "" {
				continue
			}
		}
		plain, group, ok := ungrouped(whole)
		if !ok || group != "" && group == decimal {
			continue
		}
		v := shortest(plain + "." + part)
		if group != "" && (group == l.group || group == " " && l.group == noBreak) {
			return []Decimal{v}
		}
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// ungrouped takes the separators out of a whole number: of groups of three, or as in 12,34,567.
func ungrouped(whole string) (plain, group string, ok bool) {
	at := strings.IndexFunc(whole, func(r rune) bool { return r < '0' || r > '9' })
	if at < 0 {
		return whole, "", true
	}
	group = whole[at : at+1]
	groups := strings.Split(whole, group)
	first, middle, last := groups[0], groups[1:len(groups)-1], groups[len(groups)-1]
	plain = strings.Join(groups, "")
	if first == "" || first[0] == '0' || len(first) > 3 || len(last) != 3 || strings.Trim(plain, "0123456789") != "" {
		return "", "", false
	}
	of := func(size int) bool {
		return !slices.ContainsFunc(middle, func(g string) bool { return len(g) != size })
	}
	return plain, group, of(3) || len(first) < 3 && of(2)
}
