package amount

import (
	"slices"
	"strconv"
	"strings"
)

var (
	units = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
	tens  = strings.Fields("zero ten twenty thirty forty fifty sixty seventy eighty ninety")
	steps = []string{"", "thousand", "million", "billion", "trillion"}
)

// below words a number below 1000, without the zero.
func below(n int) (words []string) {
	if n >= 100 {
		words = append(words, units[n/100], "hundred")
		n %= 100
	}
	switch {
	case n == 0:
	case n < 20:
		words = append(words, units[n])
	case n%10 == 0:
		words = append(words, tens[n/10])
	default:
		words = append(words, tens[n/10]+"-"+units[n%10])
	}
	return words
}

// cardinal words the digits of a whole number of at most 15 digits.
func cardinal(digits string) string {
	var words []string
	for step := range steps {
		end := len(digits) - 3*step
		if end <= 0 {
			break
		}
		n, err := strconv.Atoi(digits[max(0, end-3):end])
		if err != nil || n == 0 {
			continue
		}
		group := below(n)
		if step > 0 {
			group = append(group, steps[step])
		}
		words = append(group, words...)
	}
	if len(words) == 0 {
		return "zero"
	}
	return strings.Join(words, " ")
}

// A money is what people call a currency and its hundredth.
type money struct{ one, many, cent, cents string }

var moneys = map[string]money{
	"EUR": {"euro", "euros", "cent", "cents"}, "USD": {"US dollar", "US dollars", "cent", "cents"},
	"GBP": {"pound", "pounds", "penny", "pence"}, "CHF": {"Swiss franc", "Swiss francs", "centime", "centimes"},
	"JPY": {"yen", "yen", "", ""}, "CNY": {"yuan", "yuan", "", ""}, "INR": {"Indian rupee", "Indian rupees", "paisa", "paise"},
	"CAD": {"Canadian dollar", "Canadian dollars", "cent", "cents"}, "AUD": {"Australian dollar", "Australian dollars", "cent", "cents"},
	"SEK": {"Swedish krona", "Swedish kronor", "öre", "öre"}, "NOK": {"Norwegian krone", "Norwegian kroner", "øre", "øre"},
	"DKK": {"Danish krone", "Danish kroner", "øre", "øre"}, "PLN": {"zloty", "zlotys", "grosz", "groszy"}, "BRL": {"Brazilian real", "Brazilian reais", "centavo", "centavos"},
}

// inWords is a value in English.
func inWords(v Decimal, code string) string {
	text, minus := strings.CutPrefix(string(v), "-")
	whole, part, _ := strings.Cut(text, ".")
	words, name := cardinal(whole), moneys[code]
	cents := part != "" && len(part) <= 2 && name.cent != ""
	if part != "" && !cents {
		words += " point"
		for _, digit := range part {
			words += " " + units[digit-'0']
		}
	}
	switch {
	case name.one == "" && code != "":
		words += " " + code
	case text == "1" || cents && whole == "1":
		words += " " + name.one
	case code != "":
		words += " " + name.many
	}
	if cents {
		n, _ := strconv.Atoi((part + "0")[:2])
		unit := name.cents
		if n == 1 {
			unit = name.cent
		}
		if words += " and "; whole == "0" {
			words = "" // fifty cents, not zero euros and fifty cents
		}
		words += strings.Join(below(n), " ") + " " + unit
	}
	if minus {
		words = "minus " + words
	}
	return strings.TrimSpace(words)
}

// ofWords reads a whole number in English words; ok is false for what nobody would write.
func ofWords(words []string) (digits string, ok bool) {
	var plain []string
	for _, w := range words {
		switch w {
		case "and":
		case "a", "an":
			plain = append(plain, "one")
		default:
			plain = append(plain, w)
		}
	}
	var total, group int64
	for _, w := range plain {
		n := int64(slices.Index(units, w))
		if n < 0 {
			n = 10 * int64(slices.Index(tens, w))
		}
		step := slices.Index(steps, w)
		switch {
		case n >= 0:
			group += n
		case w == "hundred":
			group *= 100
		case step > 0:
			for range step {
				group *= 1000
			}
			total, group = total+group, 0
		default:
			return "", false
		}
		if group > 1e15 || total > 1e15 {
			return "", false
		}
	}
	total += group
	digits = strconv.FormatInt(total, 10)
	said := strings.Join(plain, " ")
	hundreds := "" // nineteen hundred
	if total%100 == 0 && total > 1000 && total < 10_000 {
		hundreds = strings.ReplaceAll(cardinal(strconv.FormatInt(total/100, 10)), "-", " ") + " hundred"
	}
	return digits, len(plain) > 0 && (said == strings.ReplaceAll(cardinal(digits), "-", " ") || said == hundreds)
}
