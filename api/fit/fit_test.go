package fit_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
)

// fill makes everything that can be long in a value as long as an act can make it: texts of control
// characters, which have six bytes as JSON, wide and deep terms, and lists of them.
func fill(v reflect.Value, depth int) {
	switch {
	case !v.CanSet() || depth > 6:
	case v.Type() == reflect.TypeFor[jsontext.Value]():
		v.SetBytes([]byte(`{"a":` + strings.Repeat(`{"b":[`, 20) + strings.Repeat("1,", 2000) + `"` + strings.Repeat(`\u0001`, 500) + `"` + strings.Repeat(`]}`, 20) + `}`))
	case v.Type() == reflect.TypeFor[string]():
		v.SetString(strings.Repeat("\x01\"é", 1000))
	case v.Kind() == reflect.String: // named: an agent, a hash
		v.SetString(strings.Repeat("x", 250))
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String:
		v.Set(reflect.MakeSlice(v.Type(), 100, 100))
		fill(v.Index(0), depth+1)
		for i := range 99 {
			v.Index(i + 1).Set(v.Index(0))
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth+1)
		}
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range 3 {
			fill(v.Index(i), depth+1)
		}
	case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{"a", strings.Repeat("\x02", 3000)} {
			e := reflect.New(v.Type().Elem()).Elem()
			fill(e, depth+1)
			v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), e)
		}
	}
}

// TestFitIsBoundedByConstruction: whatever is in a row, an item or a view, it has at most as many bytes as
// promised, says that it was cut, and stays what it is. A field that is added tomorrow is in the test.
func TestFitIsBoundedByConstruction(t *testing.T) {
	t.Parallel()
	fits[api.EscalationItem](t, api.MaxItemBytes)
	fits[api.SessionSummary](t, api.MaxRowBytes)
	fits[api.Card](t, api.MaxRowBytes)
	fits[api.OfferView](t, 4<<10)
	fits[api.GrantView](t, 4<<10)
	fits[api.AuthorityView](t, 4<<10)
	fits[api.Change](t, 4<<10)
	fits[api.SessionView](t, 256<<10)
}

func fits[T any](t *testing.T, most int) {
	t.Helper()
	var v, short T
	fill(reflect.ValueOf(&v).Elem(), 0)
	before, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		t.Fatalf("%T: %v", v, err)
	}
	short = v
	if cut := fit.To(&short, most); !cut || !reflect.ValueOf(short).FieldByName("Truncated").Bool() {
		t.Errorf("%T: %d bytes were cut, and it does not say so", v, len(before))
	}
	sent, err := json.Marshal(short)
	if err != nil || len(sent) > most {
		t.Errorf("%T: %d bytes became %d, more than %d: %v", v, len(before), len(sent), most, err)
	}
	if len(sent) < most/16 {
		t.Errorf("%T: only %d of %d bytes are left", v, len(sent), most)
	}
	if err := json.Unmarshal(sent, new(T)); err != nil {
		t.Errorf("%T: what was sent cannot be read: %v", v, err)
	}
	reflect.ValueOf(&v).Elem().FieldByName("Truncated").SetBool(true) // fill has set no bool
	reflect.ValueOf(&v).Elem().FieldByName("Truncated").SetBool(false)
	if after, err := json.Marshal(v, json.Deterministic(true)); err != nil || string(after) != string(before) {
		t.Errorf("%T: cutting changed the original, which others share: %v", v, err)
	}
	if fit.To(&short, most) {
		t.Errorf("%T: what fits was cut again", v)
	}
}

// TestFitLeavesWhatFits: what has room is sent byte for byte.
func TestFitLeavesWhatFits(t *testing.T) {
	t.Parallel()
	v := api.OfferView{Proposal: "p1", Subject: strings.Repeat("x", 3000), Terms: jsontext.Value(`{"price":1}`)}
	before := v
	if fit.To(&v, 4<<10) || !reflect.DeepEqual(v, before) {
		t.Errorf("it became %+v", v)
	}
}

// TestFitKeepsTheBeginning: of long terms each member is there while there is room, and a long one hides
// no other.
func TestFitKeepsTheBeginning(t *testing.T) {
	t.Parallel()
	v := api.OfferView{Terms: jsontext.Value(`{"a":"` + strings.Repeat("x", 100_000) + `","b":{"c":2},"d":1}`)}
	if !fit.To(&v, 4<<10) || !v.Truncated || !strings.HasSuffix(string(v.Terms), `…","b":{"c":2},"d":1}`) {
		t.Errorf("the terms became %.100s … %s", v.Terms, v.Terms[max(0, len(v.Terms)-100):])
	}
}

// A check is bounded as it is sent: what JSON escapes counts with its escapes.
func TestCheckIsBoundedAsSent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\x01", 100_000)
	check := api.Check{GrantView: api.GrantView{Scope: long}, Purpose: long}.Brief()
	if size := fit.Size(check); size > 4<<10 || !check.Truncated || !strings.HasSuffix(check.Scope, "…") {
		t.Errorf("%d bytes, truncated: %v", size, check.Truncated)
	}
}
