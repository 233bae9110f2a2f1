package readme

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
)

const protocol = "docs/PROTOCOL.md"

// TestWorkedExample computes section 10 again.
func TestWorkedExample(t *testing.T) {
	doc := document(t, protocol)
	keys := strings.Fields(named(t, doc, "text example-keys"))
	sender, broker := signer(t, keys[2], keys[5]), signer(t, keys[8], keys[11])
	is := func(lang string, got string) {
		t.Helper()
		if want := strings.TrimSpace(named(t, doc, lang)); got != want {
			t.Errorf("%s is\n%s\nthe document says\n%s", lang, got, want)
		}
	}

	envelope := []byte(named(t, doc, "json example-envelope"))
	message := read(t, envelope)
	is("json example-signing-bytes", string(message.SigningBytes()))
	signed, err := performatives.Sign(envelope, sender)
	if err != nil {
		t.Fatal(err)
	}
	message = read(t, signed)
	is("text example-signature", message.Signature)

	at := time.Date(2026, 3, 7, 14, 30, 0, 12345678, time.UTC)
	place := performatives.Stamp{Sequence: 5, PreviousHash: performatives.HashOf([]byte("the entry before"))}
	entry, stamp, err := message.Deliver(place, at, "CONVERSING", broker)
	if err != nil {
		t.Fatal(err)
	}
	is("json example-entry", string(entry))
	if hashed := strings.TrimSpace(named(t, doc, "json example-hashed-bytes")); performatives.HashOf([]byte(hashed)) != stamp.Hash {
		t.Error("the hashed bytes do not have the entry's hash")
	}
	receipt := strings.TrimSpace(named(t, doc, "json example-receipt-bytes"))
	if err := performatives.VerifyBytes(broker.Key(), []byte(receipt), stamp.Receipt.Signature); err != nil {
		t.Errorf("the receipt's bytes: %v", err)
	}
}

func signer(t *testing.T, seed, key string) performatives.Signer {
	t.Helper()
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		t.Fatal(err)
	}
	s, err := performatives.NewSigner(pair)
	if err != nil || string(s.Key()) != key {
		t.Fatalf("the key of %s is %s (%v), not %s", seed, s.Key(), err, key)
	}
	return s
}

func read(t *testing.T, envelope []byte) *performatives.Message {
	t.Helper()
	m, err := performatives.Read(envelope)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestCodes: the table of section 9 is the one of the code.
func TestCodes(t *testing.T) {
	told := map[session.Code]bool{}
	for _, row := range rows(document(t, protocol)) {
		name, ok := code(row[0])
		if !ok || len(row) != 5 {
			continue
		}
		c := session.Code(name)
		told[c] = true
		yes := map[bool]string{true: "yes", false: "no"}[c.Retryable()]
		if row[1] != strconv.Itoa(c.Status()) || row[2] != string(c.Category()) || row[3] != yes {
			t.Errorf("%s is %d, %s, %s; the document says %v", c, c.Status(), c.Category(), yes, row[1:4])
		}
	}
	for _, c := range session.Codes() {
		if !told[c] {
			t.Errorf("the document does not have %s", c)
		}
	}
}

// TestBodies: the table of section 4 has every field of every body, and * where
// it is required.
func TestBodies(t *testing.T) {
	bodies := map[string]string{}
	for _, row := range rows(document(t, protocol)) {
		if len(row) == 3 && performatives.Parse(row[0]) != performatives.Unknown {
			bodies[row[0]] = row[2]
		}
	}
	for _, act := range performatives.All() {
		text, _ := schemas.Get(act.String())
		var schema struct {
			Required   []string       `json:"required"`
			Properties map[string]any `json:"properties"`
		}
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		body := bodies[act.String()]
		for _, name := range schema.Required {
			if !strings.Contains(body, "`"+name+"*`") {
				t.Errorf("%s requires %s; the document does not say so", act, name)
			}
		}
		for name := range schema.Properties {
			if name != "message" && name != "assessment" && !strings.Contains(body, "`"+name) {
				t.Errorf("the document does not have %s's %s", act, name)
			}
		}
	}
}

// TestVerbs: the table of section 9 is the one of package api: the same verbs in
// the same order, called by the same people, with the same members.
func TestVerbs(t *testing.T) {
	all := rows(document(t, protocol))
	head := slices.IndexFunc(all, func(row []string) bool { return slices.Equal(row, []string{"verb", "request", "reply"}) })
	told := all[head+1:]
	if end := slices.IndexFunc(told, func(row []string) bool { return len(row) != 3 }); end >= 0 {
		told = told[:end]
	}
	verbs := api.Verbs()
	if len(told) != len(verbs) {
		t.Fatalf("the document has %d verbs, package api has %d", len(told), len(verbs))
	}
	for i, v := range verbs {
		first := "`" + v.Name + "`"
		if v.Role == api.Operator {
			first += " (operator)"
		}
		if told[i][0] != first {
			t.Errorf("row %d is of %s, want %s", i+1, told[i][0], first)
			continue
		}
		if diff := cmp.Diff(membersOf(v.Request), membersTold(told[i][1], true)); diff != "" {
			t.Errorf("the request of %s:\n%s", v.Name, diff)
		}
		if !strings.HasPrefix(told[i][2], "`{") {
			continue // it is told elsewhere
		}
		want := membersOf(v.Reply)
		for i := range want {
			want[i] = strings.TrimSuffix(want[i], "?") // a list is always there, whatever Go's tag says
		}
		if diff := cmp.Diff(want, membersTold(told[i][2], false)); diff != "" {
			t.Errorf("the reply of %s:\n%s", v.Name, diff)
		}
	}
}

// membersOf are the JSON members of a type, sorted, with a ? where one may be absent.
func membersOf(of reflect.Type) []string {
	names := []string{}
	for _, field := range api.Members(of) {
		name, more, _ := strings.Cut(field.Tag.Get("json"), ",")
		if strings.Contains(more, "omitzero") {
			name += "?"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// membersTold are those that a cell such as `{agentId, key?}` tells of, sorted.
func membersTold(cell string, marks bool) []string {
	object, _, _ := strings.Cut(strings.TrimPrefix(cell, "`{"), "}`")
	names, depth, start := []string{}, 0, 0
	add := func(part string) {
		for name := range strings.SplitSeq(part, " | ") { // one of them, or a value's alternative
			name, _, _ = strings.Cut(strings.TrimSpace(name), ":")
			if !marks {
				name = strings.TrimSuffix(name, "?")
			}
			if name != "" && name[0] != '"' {
				names = append(names, name)
			}
		}
	}
	for i, c := range object {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				add(object[start:i])
				start = i + 1
			}
		}
	}
	add(object[start:])
	slices.Sort(names)
	return names
}
