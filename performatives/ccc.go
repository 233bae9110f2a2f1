package performatives

import (
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A CCC is a principal's Confidentiality and Compliance Context, as its card has it
// (OAP-CORE-1.0, section 18.2): the part of it that a broker judges by. What it forbids is
// its organisation's secret; a transcript pins the Regulation only.
type CCC struct {
	Scope string `json:"scope_id"`
	NDAs  []struct {
		Counterparties []string `json:"counterparties"`
		Type           string   `json:"type"`
		Categories     []string `json:"covered_categories"`
		From           string   `json:"valid_from"`
		Until          string   `json:"valid_until"`
	} `json:"active_ndas"`
	Embargo []string `json:"embargo_list"`
	Walls   []struct {
		Between []string `json:"between"`
	} `json:"chinese_walls"`
	Regulation
}

// A Regulation is what a principal's profession or trade obliges it to.
type Regulation struct {
	Classification string   `json:"regulatory_classification"` // one of Classifications
	Codes          []string `json:"professional_codes,omitzero"`
	Duties         []string `json:"fiduciary_duties,omitzero"`
}

// Unregulated is the classification of what no rule covers.
const Unregulated = "none"

// Classifications are OAP's regulatory classifications, the least restrictive first.
func Classifications() []string {
	return []string{
		Unregulated, "trade_secret", "banking_secrecy", "auditor_confidentiality", "tax_advisor_confidentiality",
		"therapeutic_privilege", "medical_confidentiality", "journalist_source_protection", "confessional_seal", "attorney_client_privileged", "diplomatic_classified",
	}
}

// firstPrivileged is the least restrictive one that makes a session privileged.
const firstPrivileged = "therapeutic_privilege"

// MostRestrictive is the more restrictive of two classifications; "" is less than any.
func MostRestrictive(a, b string) string {
	all := Classifications()
	if slices.Index(all, a) >= slices.Index(all, b) {
		return a
	}
	return b
}

// Privileged reports whether the public log may show no more of a session than commitments
// (OAP-CORE-1.0, section 18.5).
func Privileged(classification string) bool {
	all := Classifications()
	return slices.Index(all, classification) >= slices.Index(all, firstPrivileged)
}

// ReadCCC reads the context of a card; nil is none.
func ReadCCC(raw jsontext.Value) (*CCC, error) {
	if len(raw) == 0 {
		return nil, nil //nolint:nilnil // it has none
	}
	c := new(CCC)
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, err
	}
	if c.Classification == "" {
		c.Classification = Unregulated
	}
	return c, nil
}

// Bars reports whether a principal's context keeps it from negotiating with another, by an
// embargo or a wall between the two. names are what lists may call the two principals.
func (c *CCC) Bars(self, other []string) bool {
	if c == nil {
		return false
	}
	if anyOf(c.Embargo, other) {
		return true
	}
	for _, wall := range c.Walls {
		for i, side := range wall.Between {
			if slices.Contains(other, side) && anyOf(slices.Delete(slices.Clone(wall.Between), i, i+1), self) {
				return true
			}
		}
	}
	return false
}

// Covers reports whether an NDA with others keeps a principal from negotiating with another
// about one of these categories at a time.
func (c *CCC) Covers(other, categories []string, at time.Time) bool {
	if c == nil {
		return false
	}
	day := at.UTC().Format(time.DateOnly)
	for _, nda := range c.NDAs {
		inForce := nda.From <= day && day <= nda.Until && nda.Type != "one_way_outbound" // which obliges the counterparties
		if inForce && anyOf(nda.Categories, categories) && !anyOf(nda.Counterparties, other) {
			return true
		}
	}
	return false
}

func anyOf(list, names []string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return s != "" && slices.Contains(names, s) })
}

// WebDID is the did:web of a principal: its host and path. A human's has a percent-encoded @
// before the name.
func WebDID(a Agent) string {
	_, rest, _ := strings.Cut(string(a), "://")
	if a.IsHuman() {
		rest = strings.Replace(rest, "/", "/%40", 1)
	}
	return "did:web:" + strings.ReplaceAll(rest, "/", ":")
}
