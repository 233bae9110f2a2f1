package performatives_test

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// OAP-CORE-1.0, section 18: embargo lists, walls and NDAs bar a principal from another.
func TestBars(t *testing.T) {
	t.Parallel()
	self, other := []string{"did:web:acme.com:buyer", "did:web:acme.com", "scope_a"}, []string{"did:web:widgets.co:seller", "did:web:widgets.co", "scope_b"}
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	nda := func(members string) string {
		return `{"active_ndas":[{"covered_categories":["pricing"],"valid_from":"2026-05-04","valid_until":"2026-05-04",` + members + `}]}`
	}
	for context, want := range map[string]bool{
		``: false, `{}`: false,
		`{"embargo_list":["did:web:widgets.co"]}`:                                                                                   true,
		`{"embargo_list":["did:web:widgets.co:seller"]}`:                                                                            true,
		`{"embargo_list":["did:web:widgets.com",""]}`:                                                                               false,
		`{"chinese_walls":[{"between":["scope_a","scope_b"]}]}`:                                                                     true,
		`{"chinese_walls":[{"between":["did:web:widgets.co","scope_a"]}]}`:                                                          true,
		`{"chinese_walls":[{"between":["scope_b","scope_c"]}]}`:                                                                     false,
		`{"chinese_walls":[{"between":["scope_a","scope_c"]}]}`:                                                                     false,
		nda(`"counterparties":["did:web:client.io"],"type":"mutual"`):                                                               true,
		nda(`"counterparties":["did:web:client.io"],"type":"one_way_inbound"`):                                                      true,
		nda(`"counterparties":["did:web:client.io"],"type":"one_way_outbound"`):                                                     false,
		nda(`"counterparties":["did:web:widgets.co"],"type":"mutual"`):                                                              false,
		`{"active_ndas":[{"covered_categories":["pricing"],"valid_from":"2026-05-05","valid_until":"2027-05-04","type":"mutual"}]}`: false,
		`{"active_ndas":[{"covered_categories":["scope"],"valid_from":"2026-05-04","valid_until":"2027-05-04","type":"mutual"}]}`:   false,
	} {
		c, err := performatives.ReadCCC(jsontext.Value(context))
		if err != nil || (c.Bars(self, other) || c.Covers(other, []string{"pricing"}, at)) != want {
			t.Errorf("%s bars: %v, %v", context, !want, err)
		}
	}
}

func TestMostRestrictive(t *testing.T) {
	t.Parallel()
	all := performatives.Classifications()
	for i, less := range all {
		for _, more := range all[i:] {
			if performatives.MostRestrictive(less, more) != more || performatives.MostRestrictive(more, less) != more {
				t.Errorf("%s is not more restrictive than %s", more, less)
			}
		}
	}
	if performatives.MostRestrictive("", "none") != "none" || performatives.Privileged("") || performatives.Privileged("trade_secret") || !performatives.Privileged("medical_confidentiality") {
		t.Error("what is unregulated counts wrongly")
	}
}
