package broker_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// A card that is too large is refused with the limit, and changes nothing.
func TestLimitsOfCards(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{Dev: true})
	c := w.Client("agent://acme.com/alpha")
	_, err := c.Register(w.Ctx, api.Card{Name: "Alpha"})
	testkit.Must(t, err)
	skill := func(change func(*discovery.Skill)) api.Card {
		s := discovery.Skill{ID: "s", Name: "S"}
		change(&s)
		return api.Card{Skills: []discovery.Skill{s}}
	}
	many := make([]string, 10_000)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for limit, card := range map[string]api.Card{
		"a card has at most 65536 bytes; this one has ":   {Description: strings.Repeat("\u202e", api.MaxCardBytes/2)},
		"each list of a skill has at most 200 items":      skill(func(s *discovery.Skill) { s.Tags = many[:201] }),
		"at most 200 items":                               skill(func(s *discovery.Skill) { s.AllowedTools = many[:1000] }),
		"at most":                                         skill(func(s *discovery.Skill) { s.Tags = many }),
		"a capability has at most 128 bytes":              {Capabilities: []string{strings.Repeat("x", 129)}},
		"a card has at most 100 skills; this one has 101": {Skills: make([]discovery.Skill, 101)},
	} {
		_, err := c.Register(w.Ctx, card)
		refusal, is := errors.AsType[*session.Refusal](err)
		if !is || refusal.Code != session.SchemaInvalid || !strings.Contains(fmt.Sprint(refusal.Message, refusal.Details), limit) {
			t.Errorf("want %q: %v", limit, err)
		}
	}
	if card, err := c.Card(w.Ctx, c.Agent()); err != nil || card.Name != "Alpha" || card.Skills != nil {
		t.Errorf("a refused card changed %+v: %v", card, err)
	}
}
