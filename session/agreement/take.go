package agreement

import (
	"crypto/sha256"
	"math/big"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// A taker finds the value of a field, and says where it is from.
type taker func(Document) (value any, from string, found bool)

func nothing(Document) (any, string, bool) { return nil, "", false }

func constant(value string) taker {
	return func(Document) (any, string, bool) { return value, "constant", true }
}

// term takes the term of that name.
func term(name string) taker {
	return func(d Document) (any, string, bool) {
		value, has := d.Terms[name]
		return value, "/terms/" + name, has
	}
}

func either(first, second taker) taker {
	return func(d Document) (any, string, bool) {
		if value, from, found := first(d); found {
			return value, from, true
		}
		return second(d)
	}
}

// payee is AP2's merchant, of the terms or one of the parties.
func payee(d Document) (any, string, bool) {
	for _, name := range []string{"payee", "seller", "merchant"} {
		value, has := d.Terms[name]
		if !has {
			continue
		}
		var merchant struct{ ID, Name string }
		if json.Unmarshal(value, &merchant) == nil && merchant.ID != "" && merchant.Name != "" {
			return value, "/terms/" + name, true
		}
		var id string
		if json.Unmarshal(value, &id) != nil {
			continue
		}
		for _, party := range d.Parties {
			if agent, err := party.Agent(); string(party) == id || err == nil && string(agent) == id {
				return map[string]string{"id": string(party), "name": id}, "/terms/" + name, true
			}
		}
	}
	return nil, "", false
}

// A sum of money, in minor units of its currency.
type sum struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

// paymentAmount is the one sum of the terms.
func paymentAmount(d Document) (any, string, bool) {
	s, from, found := d.sum()
	return s, from, found
}

// currency is that of the terms, or of their one sum.
func currency(d Document) (any, string, bool) {
	if code := text(d.Terms["currency"]); isCurrency(code) {
		return code, "/terms/currency", true
	}
	s, from, found := d.sum()
	return s.Currency, from, found
}

// sum reads the term total, amount or price, if there is only one of them: a number, a
// decimal string, or an object with one of them as its amount or value, and a currency.
func (d Document) sum() (s sum, from string, found bool) {
	for _, name := range []string{"total", "amount", "price"} {
		value, has := d.Terms[name]
		if !has {
			continue
		}
		if from != "" {
			return s, "", false
		}
		from = "/terms/" + name
		code := text(d.Terms["currency"])
		var object map[string]jsontext.Value
		if json.Unmarshal(value, &object) == nil && object != nil {
			amount, isAmount := object["amount"]
			other, isValue := object["value"]
			if isAmount == isValue {
				return s, "", false
			}
			if value = amount; isValue {
				value = other
			}
			if c, has := object["currency"]; has {
				code = text(c)
			}
		}
		s.Amount, found = minorUnits(value, code)
		s.Currency = code
	}
	return s, from, found
}

func text(value jsontext.Value) (s string) {
	if len(value) == 0 || json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// maxDecimal bounds the characters of an amount.
const maxDecimal = 32

// minorUnits are an amount in minor units of a currency, if it is a whole number of them.
func minorUnits(value jsontext.Value, code string) (int64, bool) {
	decimal := string(value)
	if value.Kind() == '"' {
		decimal = text(value)
	}
	if !isCurrency(code) || len(decimal) == 0 || len(decimal) > maxDecimal || slices.ContainsFunc([]byte(decimal), func(c byte) bool {
		return c != '.' && (c < '0' || c > '9')
	}) {
		return 0, false
	}
	amount, ok := new(big.Rat).SetString(decimal)
	if !ok {
		return 0, false
	}
	amount.Mul(amount, new(big.Rat).SetInt64(pow10(digits(code))))
	return amount.Num().Int64(), amount.IsInt() && amount.Num().IsInt64()
}

func pow10(n int) int64 {
	all := int64(1)
	for range n {
		all *= 10
	}
	return all
}

func isCurrency(code string) bool {
	return len(code) == 3 && !slices.ContainsFunc([]byte(code), func(c byte) bool { return c < 'A' || c > 'Z' })
}

// digits are the decimal digits of a currency's minor unit by ISO 4217. Unicode's tables,
// which libraries have, differ from it for some currencies.
func digits(code string) int {
	switch code {
	case "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF":
		return 0
	case "BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND":
		return 3
	case "CLF", "UYW":
		return 4
	default:
		return 2
	}
}

// entries are the messages of offer and acceptance, nil if they were taken out.
func (d Document) entries() (offer, acceptance *performatives.Message) {
	read := func(data []byte) *performatives.Message {
		m, _, _, err := performatives.ReadDelivered(data)
		if err == nil {
			err = m.DecodeBody()
		}
		if err != nil {
			return nil
		}
		return m
	}
	if d.Evidence == nil {
		return nil, nil
	}
	return read(d.Evidence.Offer), read(d.Evidence.Acceptance)
}

func proposalID(d Document) (any, string, bool) {
	offer, _ := d.entries()
	if offer == nil {
		return nil, "", false
	}
	return offer.Body.ID(offer.ID), "/evidence/offer", true
}

func subject(d Document) (any, string, bool) {
	offer, _ := d.entries()
	if offer == nil {
		return nil, "", false
	}
	b, proposes := offer.Body.(*performatives.ProposeBody)
	if !proposes {
		return nil, "", false
	}
	return b.Subject, "/evidence/offer/content/body/subject", b.Subject != ""
}

func acceptanceID(d Document) (any, string, bool) {
	_, acceptance := d.entries()
	if acceptance == nil {
		return nil, "", false
	}
	return acceptance.ID, "/evidence/acceptance/messageId", true
}

// commercialTerms are the term of that name, or all terms.
func commercialTerms(d Document) (any, string, bool) {
	if value, has := d.Terms["commercial_terms"]; has {
		return value, "/terms/commercial_terms", true
	}
	return d.Terms, "/terms", len(d.Terms) == len(d.Digests)
}

// termsDigest is the SHA-256 of the commercial terms in canonical form.
func termsDigest(d Document) (any, string, bool) {
	terms, from, found := commercialTerms(d)
	data, err := canonical(terms)
	if !found || err != nil {
		return nil, "", false
	}
	hash := sha256.Sum256(data)
	return "sha256:" + encoding.EncodeToString(hash[:]), "SHA-256 of " + from, true
}
