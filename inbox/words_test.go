package inbox

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// TestSpan agrees with static/clock.js, which updates what the server rendered.
func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0m 00s", 59 * time.Second: "0m 59s", 61 * time.Second: "1m 01s", time.Hour: "1h 00m", 26 * time.Hour: "1d 02h",
		-80 * time.Second: "−1m 20s",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%s) = %s, want %s", d, got, want)
		}
	}
}

// TestClean keeps lines and escapes invisible characters.
func TestClean(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"two\r\nlines":    "two\nlines",
		"a\tb":            "a    b",
		"fdp\u202eexe":    `fdp\u202eexe`,
		"zero\u200bwidth": `zero\u200bwidth`,
		"bell\a":          `bell\u0007`,
		"déjà vu, 漢字 🚀":   "déjà vu, 漢字 🚀",
		"<b>&amp;</b>":    "<b>&amp;</b>", // the templates escape markup
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestLongProse shows an excerpt that ends in ….
func TestLongProse(t *testing.T) {
	t.Parallel()
	if p := asProse("short"); p.Start != "" || p.All != "short" {
		t.Errorf("a short text is %+v", p)
	}
	if p := asProse(strings.Repeat("ä", 5000)); len([]rune(p.Start)) > longProse+2 || p.Size != 5000 || !strings.HasSuffix(p.Start, "…") {
		t.Errorf("a long line starts with %d characters of %d", len([]rune(p.Start)), p.Size)
	}
	if p := asProse(strings.Repeat("line\n", 100)); strings.Count(p.Start, "\n") >= longLines {
		t.Errorf("of 100 lines %d are shown", strings.Count(p.Start, "\n"))
	}
}

func TestInWords(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"terms.pricePerMonth": "Price per month", "terms.a_b.c": "A b c", "terms.": "?", "terms.ümlaut": "Ümlaut", "terms.maxURL": "Max URL", "terms.SLAPercent": "SLA percent", "terms.planB": "Plan b", "terms.sla.EU": "Sla EU"} {
		if got := inWords(path); got != want {
			t.Errorf("inWords(%s) = %s, want %s", path, got, want)
		}
	}
}

// A message of the broker is capitalized on a page, but for a name, and a URI of a principal is a name.
func TestSentence(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"": "", "the code is wrong": "The code is wrong", "Élan": "Élan", "élan": "Élan",
		"human://acme.com/alice has claimed it": "alice of acme.com has claimed it", "ask human://acme.com/eu/bob, or agent://b.example/x.": "Ask eu/bob of acme.com, or x of b.example.",
		"see https://acme.com/alice": "See https://acme.com/alice",
	} {
		if got := sentence(said); got != want {
			t.Errorf("%q becomes %q, want %q", said, got, want)
		}
	}
}

// A name that is not in plain Latin letters is marked.
func TestLetters(t *testing.T) {
	for name, want := range map[string]string{
		"sales/beta": "", "josé": "", "s\u0430les": "Latin and Cyrillic", "\u0441\u0430": "Cyrillic", "\uff41cme": "special and Latin", "\u03b1": "Greek",
	} {
		if got := letters(performatives.Agent("agent://acme.com/" + name)); got != want {
			t.Errorf("%q has %q letters, want %q", name, got, want)
		}
	}
}
