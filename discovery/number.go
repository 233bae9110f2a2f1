package discovery

import (
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// round4 rounds a number to four decimal places. Only an exact tie goes to the even digit.
func round4(x float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'f', 4, 64), 64)
	if err != nil {
		return x // infinite
	}
	return rounded
}

// sum adds by Neumaier's compensated summation.
func sum(numbers ...float64) float64 {
	total, lost := 0.0, 0.0
	for _, x := range numbers {
		next := total + x
		if math.Abs(total) >= math.Abs(x) {
			lost += total - next + x
		} else {
			lost += x - next + total
		}
		total = next
	}
	if math.IsNaN(lost) || math.IsInf(lost, 0) {
		return total
	}
	return total + lost
}

// amount reads a number or a text of which only digits and dots count. It is false for
// anything else and for an empty text, and NaN where the text is not a number.
func amount(v jsontext.Value) (value float64, ok bool) {
	switch v.Kind() {
	case '0':
		value, err := strconv.ParseFloat(string(v), 64)
		return value, err == nil
	case '"':
		var text string
		if json.Unmarshal(v, &text) != nil || text == "" {
			return 0, false
		}
		return decimal(text), true
	}
	return 0, false
}

// costCap reads the most that a task may cost. Zero is no cap.
func costCap(v jsontext.Value) (value float64, ok bool) {
	value, ok = amount(v)
	return value, ok && value != 0
}

func decimal(text string) float64 {
	digits := strings.Map(func(r rune) rune {
		switch {
		case r == '.', r >= '0' && r <= '9':
			return r
		case unicode.IsDigit(r):
			return digit(r)
		}
		return -1
	}, text)
	if digits == "" {
		return 0
	}
	value, err := strconv.ParseFloat(digits, 64)
	if err != nil && !math.IsInf(value, 0) {
		return math.NaN()
	}
	return value
}

// digit returns the ASCII digit of a decimal digit in any script. Unicode has them in
// runs of ten, from 0 to 9.
func digit(r rune) rune {
	value := rune(0)
	for unicode.IsDigit(r - value - 1) {
		value++
	}
	return '0' + value%10
}

// price reads what an agent takes: an amount, or an object with an amount.
func price(pricing jsontext.Value) (value float64, ok bool) {
	if pricing.Kind() != '{' {
		return amount(pricing)
	}
	var says struct {
		Amount jsontext.Value `json:"amount"`
	}
	if len(members(pricing)) == 0 || json.Unmarshal(pricing, &says) != nil {
		return 0, false
	}
	value, _ = amount(says.Amount)
	return value, true
}
