package performatives

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	sealedAsk    = `{"reason":"authority-limit","urgency":"high","context":{"limit":950001234567,"café":"😀"},"suggestedAction":"approve"}`
	sealedRuling = `{"type":"resolution","data":{"escalationId":"e","decision":"approved","comment":"go","authority":{"maxAmount":950001234567}}}`
)

// seals makes a message with members of its body sealed, and reads it.
func seals(t *testing.T, act Performative, body string, members ...string) (*Message, SealedParts) {
	t.Helper()
	sealed, parts, err := Seal(act, jsontext.Value(body), rand.Reader, members...)
	if err != nil {
		t.Fatal(err)
	}
	return &Message{Performative: act, RawBody: sealed}, parts
}

// What is sealed is not in the body, and its parts bring it back (PROTOCOL.md §7).
func TestSeal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		act     Performative
		body    string
		members []string
	}{
		{Escalate, sealedAsk, []string{SealContext, SealSuggested}},
		{Escalate, sealedAsk, []string{SealContext}},
		{Inform, sealedRuling, []string{SealAuthority}},
		{Inform, strings.Replace(sealedRuling, "type", "informType", 1), []string{SealAuthority, SealComment}},
	} {
		m, parts := seals(t, c.act, c.body, c.members...)
		if len(m.Digests()) != len(c.members) || strings.Contains(string(m.RawBody), "950001234567") {
			t.Errorf("%s: sealed is %s", c.act, m.RawBody)
		}
		if err := m.Open(parts); err != nil {
			t.Errorf("%s: %v", c.act, err)
		}
		want, err := Canonical([]byte(c.body))
		if err != nil || !Equal(m.OpenBody(), want) {
			t.Errorf("%s: opened is %s, want %s", c.act, m.OpenBody(), want)
		}
		if err := m.DecodeBody(); err != nil {
			t.Error(err)
		}
		header, err := parts.Header()
		if err != nil || strings.ContainsFunc(header, func(r rune) bool { return r > 0x7e || r < ' ' }) {
			t.Errorf("%s is no header: %v", header, err)
		}
		read, err := ReadParts(jsontext.Value(header))
		if err != nil {
			t.Fatal(err)
		}
		again := &Message{Performative: c.act, RawBody: m.RawBody}
		if err := again.Open(read); err != nil || !Equal(again.OpenBody(), want) {
			t.Errorf("%s: opened by its header it is %s: %v", c.act, again.OpenBody(), err)
		}
	}
}

// Nothing but these members of these acts is sealed.
func TestSealNothing(t *testing.T) {
	t.Parallel()
	for body, act := range map[string]Performative{
		`{"proposalId":"p","type":"t","subject":"s","terms":{},"context":"x"}`: Propose,
		`{"type":"fact","data":{"authority":{"maxAmount":1}}}`:                 Inform,
		`{"reason":"authority-limit","urgency":"high","sealed":"junk"}`:        Escalate,
	} {
		if m, parts := seals(t, act, body, SealContext, SealAuthority, SealComment); parts != nil || m.Digests() != nil {
			t.Errorf("%s is sealed as %s", body, m.RawBody)
		}
	}
}

// Parts that are missing, wrong or too many open nothing.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	m, parts := seals(t, Escalate, sealedAsk, SealContext)
	part := parts[SealContext]
	with := func(p SealedPart) SealedParts { return SealedParts{SealContext: p} }
	for name, wrong := range map[string]SealedParts{
		"none":          nil,
		"another value": with(SealedPart{part.Salt, jsontext.Value(`{"limit":1}`)}),
		"another salt":  with(SealedPart{strings.Repeat("A", 43), part.Value}),
		"a short salt":  with(SealedPart{"AAAA", part.Value}),
		"too many":      {SealContext: part, SealSuggested: part},
	} {
		if err := m.Open(wrong); err == nil {
			t.Errorf("%s opens it", name)
		}
	}
	both := &Message{Performative: Escalate, RawBody: jsontext.Value(strings.Replace(string(m.RawBody), `{`, `{"context":"x",`, 1))}
	if err := both.Open(parts); err == nil || !strings.Contains(err.Error(), "open and sealed") {
		t.Errorf("open and sealed: %v", err)
	}
	if err := m.Open(parts); err != nil {
		t.Error(err)
	}
}
