package registry

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
)

// Bounds of what a card says beyond the contract. Together with the rest it has at most
// api.MaxCardBytes.
const (
	maxExtra     = 64  // members
	maxExtraName = 128 // bytes
)

// checkExtra refuses unknown members that readers of a card would believe, and too many.
func checkExtra(extra api.Extra) error {
	if len(extra) > maxExtra {
		return cardFault("/card/extra", fmt.Sprintf("a card has at most %d members that parley does not know; this one has %d", maxExtra, len(extra)))
	}
	for name, value := range extra {
		folded := fold(name)
		switch {
		case name == "" || len(name) > maxExtraName:
			return cardFault("/card/extra", fmt.Sprintf("the name of a member has 1 to %d bytes", maxExtraName))
		case name == "registry":
			var unknown api.Extra
			if json.Unmarshal(value, &unknown) == nil {
				for member := range unknown {
					return cardFault("/card/registry/"+member, fmt.Sprintf("%.128s is no member of registry, which only the registry sets", member))
				}
			}
			return cardFault("/card/registry", "registry is set by the registry, not by a card")
		case registers[folded]:
			return cardFault("/card/"+name, name+" is the registry's to say, not a card's")
		case defined[folded] != "":
			return cardFault("/card/"+name, fmt.Sprintf("%s would be taken for %s, which is a member of the card itself", name, defined[folded]))
		case strings.HasPrefix(folded, "trust"), strings.HasPrefix(folded, "authority"), strings.HasPrefix(folded, "dpop"), believed[folded]:
			return cardFault("/card/"+name, name+" would be believed, and nothing here proves it: trust, authority and keys come from the registry")
		}
	}
	return nil
}

// believed are members of cards elsewhere, folded, that claim trust, rights or keys. So
// does whatever begins with trust, authority or dpop.
var believed = map[string]bool{
	"reputation": true, "reputationscore": true, "verified": true, "isverified": true,
	"publickey": true, "publickeys": true, "signingkey": true, "verificationmethod": true, "jwk": true, "jwks": true,
	"permissions": true, "admin": true, "isadmin": true,
}

// registers are the members of registry, folded; defined those of a card, by their folded names.
var registers, defined = func() (map[string]bool, map[string]string) {
	of, names := map[string]bool{}, map[string]string{}
	for _, field := range api.Members(reflect.TypeFor[api.Registry]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		of[fold(name)] = name != "domain" && name != "away" // words that cards elsewhere use for other things
	}
	for _, field := range api.Members(reflect.TypeFor[api.Card]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names[fold(name)] = name
	}
	return of, names
}()

// fold is a name as people read it, without case and separators.
func fold(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(name))
}

var errClaimsDomain = cardFault("/card/domainVerified", "domainVerified is the registry's to say, not a card's; agent.verify asks the domain, or vouches for it by an operator")

// claims refuses a card by which a principal says other than the registry does of it.
// What a principal read of itself it may send back.
func claims(card, stored api.Card) error {
	if card.DomainVerified && !vouched(stored) {
		return errClaimsDomain
	}
	said, is := reflect.ValueOf(card.Registry), reflect.ValueOf(stored.Registry)
	for _, field := range api.Members(said.Type()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		claim, truth := said.FieldByIndex(field.Index), is.FieldByIndex(field.Index)
		if name != "updatedAt" && !claim.IsZero() && !reflect.DeepEqual(claim.Interface(), truth.Interface()) {
			return cardFault("/card/registry/"+name, name+" is the registry's to say, not a card's")
		}
	}
	return nil
}
