package amount_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-asp/parley/inbox/amount"
)

// says sums an answer up in a line.
func says(a amount.Answer) string {
	var text string
	switch {
	case len(a.Choices) > 0:
		var all []string
		for _, c := range a.Choices {
			all = append(all, c.Shown)
		}
		text = "which: " + strings.Join(all, " | ")
	case a.Missing != "":
		text = "missing: " + a.Missing
	case a.Fault != "":
		text = "no: " + a.Fault
	default:
		text = a.Understood
	}
	return strings.ReplaceAll(text, "\u00a0", " ")
}

func TestRead(t *testing.T) {
	for _, c := range []struct{ locale, typed, currency, want string }{
		{"en", "1900", "EUR", "one thousand nine hundred euros: 1,900.00 EUR"},
		{"de", "1900", "EUR", "one thousand nine hundred euros: 1.900,00 EUR"},
		{"fr", "1900", "EUR", "one thousand nine hundred euros: 1 900,00 EUR"},
		{"de-CH", "1900", "CHF", "one thousand nine hundred Swiss francs: 1'900.00 CHF"},
		{"en-IN", "1234567", "INR", "one million two hundred thirty-four thousand five hundred sixty-seven Indian rupees: 12,34,567.00 INR"},
		{"hi", "1234567.5", "INR", "one million two hundred thirty-four thousand five hundred sixty-seven Indian rupees and fifty paise: 12,34,567.50 INR"},
		{"ar", "1900", "EUR", "one thousand nine hundred euros: 1,900.00 EUR"},
		{"tlh;q=x", "1900", "EUR", "one thousand nine hundred euros: 1,900.00 EUR"},

		// What can be two numbers is two, unless the reader's language groups so.
		{"en", "1.900", "EUR", "which: 1,900.00 EUR | 1.90 EUR"},
		{"de", "1,900", "EUR", "which: 1.900,00 EUR | 1,90 EUR"},
		{"en", "1,900", "EUR", "one thousand nine hundred euros: 1,900.00 EUR"},
		{"de", "1.900", "EUR", "one thousand nine hundred euros: 1.900,00 EUR"},
		{"fr", "1.900", "EUR", "which: 1 900,00 EUR | 1,90 EUR"},
		{"fr", "1,900", "EUR", "which: 1 900,00 EUR | 1,90 EUR"},
		{"fr", "1 900", "EUR", "one thousand nine hundred euros: 1 900,00 EUR"},
		{"de-CH", "1.900", "CHF", "which: 1'900.00 CHF | 1.90 CHF"},
		{"de-CH", "1’900.50", "CHF", "one thousand nine hundred Swiss francs and fifty centimes: 1'900.50 CHF"},
		{"en", "100.000", "", "which: 100,000 | 100"},

		// What can be one number is that, whoever writes it.
		{"en", "1.900,50", "EUR", "one thousand nine hundred euros and fifty cents: 1,900.50 EUR"},
		{"de", "1,900.50", "EUR", "one thousand nine hundred euros and fifty cents: 1.900,50 EUR"},
		{"en", "12,5", "EUR", "twelve euros and fifty cents: 12.50 EUR"},
		{"en", "0.900", "EUR", "ninety cents: 0.90 EUR"},
		{"en", "1.9000", "", "one point nine: 1.9"},
		{"en", "1.900.000", "EUR", "one million nine hundred thousand euros: 1,900,000.00 EUR"},
		{"en", "12,34,567", "INR", "one million two hundred thirty-four thousand five hundred sixty-seven Indian rupees: 1,234,567.00 INR"},
		{"en", ",5", "EUR", "fifty cents: 0.50 EUR"},
		{"en", "1900,-", "EUR", "one thousand nine hundred euros: 1,900.00 EUR"},
		{"en", "1900.", "EUR", "one thousand nine hundred euros: 1,900.00 EUR"},
		{"en", "１９００", "EUR", "one thousand nine hundred euros: 1,900.00 EUR"},
		{"en", "1", "EUR", "one euro: 1.00 EUR"},
		{"en", "0", "EUR", "zero euros: 0.00 EUR"},
		{"en", "0.01", "GBP", "one penny: 0.01 GBP"},
		{"en", "0.015", "EUR", "zero point zero one five euros: 0.015 EUR"},
		{"en", "1900", "JPY", "one thousand nine hundred yen: 1,900 JPY"},
		{"en", "1.5", "BHD", "one point five BHD: 1.500 BHD"},
		{"en", "0.1", "EUR", "ten cents: 0.10 EUR"},
		{"en", "999999999999999", "", "nine hundred ninety-nine trillion nine hundred ninety-nine billion nine hundred ninety-nine million nine hundred ninety-nine thousand nine hundred ninety-nine: 999,999,999,999,999"},

		// Currencies and words that multiply.
		{"en", "€1,900", "", "one thousand nine hundred euros: 1,900.00 EUR"},
		{"en", "1900€", "EUR", "one thousand nine hundred euros: 1,900.00 EUR"},
		{"en", "eur 1900", "", "one thousand nine hundred euros: 1,900.00 EUR"},
		{"en", "1900 sek", "", "one thousand nine hundred Swedish kronor: 1,900.00 SEK"},
		{"en", "1900 EUR", "USD", "which: 1,900.00 EUR | 1,900.00 USD"},
		{"en", "$1900", "USD", "one thousand nine hundred US dollars: 1,900.00 USD"},
		{"en", "$1900", "", "which: 1,900.00 USD | 1,900.00 CAD | 1,900.00 AUD"},
		{"en", "Fr. 1900", "", "one thousand nine hundred Swiss francs: 1,900.00 CHF"},
		{"en", "1.9k", "EUR", "one thousand nine hundred euros: 1,900.00 EUR"},
		{"en", "2.5 million", "EUR", "two million five hundred thousand euros: 2,500,000.00 EUR"},
		{"de", "2,5 Mio. €", "", "two million five hundred thousand euros: 2.500.000,00 EUR"},
		{"en", "2m", "EUR", "which: 2,000,000.00 EUR | 2,000.00 EUR"},
		{"en-IN", "3 lakh", "INR", "three hundred thousand Indian rupees: 3,00,000.00 INR"},
		{"en", "one thousand nine hundred euros", "", "one thousand nine hundred euros: 1,900.00 EUR"},
		{"en", "nineteen hundred", "EUR", "one thousand nine hundred euros: 1,900.00 EUR"},
		{"en", "a hundred and twenty-five", "EUR", "one hundred twenty-five euros: 125.00 EUR"},

		// Below zero.
		{"en", "-5", "EUR", "minus five euros: −5.00 EUR"},
		{"en", "−€5", "", "minus five euros: −5.00 EUR"},
		{"en", "(1,900)", "EUR", "minus one thousand nine hundred euros: −1,900.00 EUR"},
		{"en", "-0", "EUR", "zero euros: 0.00 EUR"},

		// What is no amount, and what is missing.
		{"en", "", "EUR", "missing: number"},
		{"en", "1900", "", "one thousand nine hundred: 1,900"},
		{"en", "1900", "EURO", "no: “EURO” is no currency. A currency has three letters, such as EUR."},
		{"en", "1900", "XYZ", "no: “XYZ” is no currency. A currency has three letters, such as EUR."},
		{"en", "1900 xyz", "", "no: “xyz” is not understood as part of an amount. Write a number and a currency, such as 1900 EUR."},
		{"en", "1,90,0", "EUR", "no: “1,90,0” is not understood as a number: its groups do not have three digits."},
		{"en", "10-20", "EUR", "no: A minus stands before the number, such as -5."},
		{"en", "5-", "EUR", "no: A minus stands before the number, such as -5."},
		{"en", "5%", "", "no: “%” is not understood as part of an amount. Write a number and a currency, such as 1900 EUR."},
		{"en", "1e3", "", "no: “e3” is not understood as part of an amount. Write a number and a currency, such as 1900 EUR."},
		{"en", "0x10", "", "no: “x10” is not understood as part of an amount. Write a number and a currency, such as 1900 EUR."},
		{"en", "NaN", "EUR", "no: This is not understood as a number. Write it in digits, such as 1900."},
		{"en", "two and twenty", "EUR", "no: This is not understood as a number. Write it in digits, such as 1900."},
		{"en", "one billion million billion", "EUR", "no: This is not understood as a number. Write it in digits, such as 1900."},
		{"en", "1234567890123456", "EUR", "no: This number has more than 15 digits."},
		{"en", strings.Repeat("9", 300), "EUR", "no: This is too long for an amount."},
		{"en", "1.900 2.900", "EUR", "no: “1.900 2.900” is not understood as a number: its groups do not have three digits."},
	} {
		if got := says(amount.Of(c.locale).Read(amount.Asked{Typed: c.typed, Currency: c.currency})); got != c.want {
			t.Errorf("%s: %q %s is\n\t%s, want\n\t%s", c.locale, c.typed, c.currency, got, c.want)
		}
	}
}

// TestJudge compares what was typed with what is at stake and what the terms allow.
func TestJudge(t *testing.T) {
	money := amount.Asked{Currency: "USD", Money: true, Rule: "max", Stake: "15000", StakeCurrency: "USD"}
	for _, c := range []struct {
		typed  string
		change func(*amount.Asked)
		doubt  string // "" for none
		fault  string
	}{
		{"15000", nil, "", ""},
		{"1501", nil, "", ""},
		{"1500", nil, "a tenth of what was asked for, or less: 1,500.00 USD, not 15,000.00 USD", ""},
		{"149999", nil, "more than was asked for: 149,999.00 USD, not 15,000.00 USD", ""},
		{"150000", nil, "ten times what was asked for, or more: 150,000.00 USD, not 15,000.00 USD", ""},
		{"15000.01", nil, "more than was asked for", ""},
		{"-15000", nil, "below zero: −15,000.00 USD", ""},
		{"0", nil, "a tenth of", ""},
		{"15000", func(a *amount.Asked) { a.Currency = "EUR" }, "asked for is in USD: 15,000.00 USD", ""},
		{"15000", func(a *amount.Asked) { a.Currency = "" }, "", "The currency is missing: 15,000 of what?"},
		{"200", func(a *amount.Asked) { *a = amount.Asked{Rule: "min", Stake: "300", Label: "Seats"} }, "less than was asked for: Seats 200, not 300", ""},
		{"400", func(a *amount.Asked) { *a = amount.Asked{Rule: "min", Stake: "300"} }, "", ""},
		{"400", func(a *amount.Asked) { *a = amount.Asked{Rule: "equals", Stake: "300"} }, "more than was asked for", ""},
		{"5", func(a *amount.Asked) { *a = amount.Asked{Min: "10"} }, "", "The terms want at least 10 here."},
		{"11", func(a *amount.Asked) { *a = amount.Asked{Max: "10"} }, "", "The terms want at most 10 here."},
		{"0.3", func(a *amount.Asked) { *a = amount.Asked{Step: "0.1"} }, "", ""}, // not so in floats
		{"0.35", func(a *amount.Asked) { *a = amount.Asked{Step: "0.1"} }, "", "a multiple of 0.1"},
		{"-5", func(a *amount.Asked) { *a = amount.Asked{} }, "below zero: −5", ""},
		{"PTS 5", func(a *amount.Asked) { *a = amount.Asked{StakeCurrency: "PTS", Stake: "5"} }, "", ""}, // the offer has it
	} {
		a := money
		if c.change != nil {
			c.change(&a)
		}
		a.Typed = c.typed
		got := amount.Of("en").Read(a)
		doubts := strings.ReplaceAll(strings.Join(got.Doubts, " "), "\u00a0", " ")
		if (c.doubt == "") != (doubts == "") || !strings.Contains(doubts, c.doubt) || (c.fault == "") != (got.Fault == "") || !strings.Contains(got.Fault, c.fault) {
			t.Errorf("%s: the doubts are %q and the fault %q, want %q and %q", c.typed, doubts, got.Fault, c.doubt, c.fault)
		}
	}
}

// TestExact is how a value that is known stays what it is, whatever its text could mean.
func TestExact(t *testing.T) {
	got := amount.Of("en").Read(amount.Asked{Exact: "1.234", Currency: "EUR"})
	if got.Value != "1.234" || got.Fault != "" {
		t.Errorf("an exact value is read as %+v", got)
	}
	for text, want := range map[string]amount.Decimal{"1.5e4": "15000", "1E-2": "0.01", "007.50": "7.5", "-0": "0", "1e-99": amount.Decimal("0." + strings.Repeat("0", 98) + "1")} {
		if d, ok := amount.Parse(text); !ok || d != want {
			t.Errorf("%s is %s, %t, want %s", text, d, ok, want)
		}
	}
	for _, text := range []string{"", "1e999999999", "0x10", "NaN", "1/3", " 1", "--1", strings.Repeat("9", 50)} {
		if d, ok := amount.Parse(text); ok {
			t.Errorf("%q is read as %s", text, d)
		}
	}
}

// TestReadsWhatItWrites reads back, in each language, how it shows a value, and what its words say.
func TestReadsWhatItWrites(t *testing.T) {
	locales := []string{"en", "de", "fr", "de-CH", "en-IN", "sv", "pl", "pt-BR", "ar"}
	rapid.Check(t, func(t *rapid.T) {
		l := amount.Of(rapid.SampledFrom(locales).Draw(t, "locale"))
		d, ok := amount.Parse(rapid.StringMatching(`-?[0-9]{1,12}(\.[0-9]{1,2})?`).Draw(t, "value"))
		if !ok {
			t.Fatal("not a decimal")
		}
		first := l.Read(amount.Asked{Exact: d, Currency: "EUR"})
		again := l.Read(amount.Asked{Typed: first.Shown, Currency: "EUR"})
		if again.Value != d || again.Understood != first.Understood {
			t.Fatalf("%s is shown as %s, which is read as %+v", d, first.Shown, again)
		}
		words, _, _ := strings.Cut(first.Understood, ": ")
		if strings.Contains(string(d), ".") {
			return
		}
		if said := l.Read(amount.Asked{Typed: words}); said.Value != d || said.Currency != "EUR" {
			t.Fatalf("%q is read as %+v, want %s", words, said, d)
		}
	})
}

func FuzzRead(f *testing.F) {
	for _, typed := range []string{"1.900", "$1,900.50", "(5)", "two million", "1'0.0,0", "-", "€", "\u202e1", "١٩٠٠"} {
		f.Add(typed, "en-IN", "USD")
	}
	f.Fuzz(func(t *testing.T, typed, accept, currency string) {
		got := amount.Of(accept).Read(amount.Asked{Typed: typed, Currency: currency, Stake: "15000"})
		if n := len(got.Choices); got.Fault == "" && (got.Value == "" || n > 0) || n == 1 || n > 8 {
			t.Errorf("%q is answered %+v", typed, got)
		}
		if _, ok := amount.Parse(string(got.Value)); got.Value != "" && !ok {
			t.Errorf("%q is read as %q", typed, got.Value)
		}
	})
}
