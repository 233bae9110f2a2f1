package agreement

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// An OAPDocument is what a party signed in OAP's form (RFC-0002): a proposal, or its answer
// to one. It rides in content.context of the act that it became.
type OAPDocument struct {
	Proposal           string         `json:"proposal_id"`
	Negotiation        string         `json:"negotiation_id"`
	Previous           string         `json:"previous_proposal_id"` // "" is none
	From               DID            `json:"from"`
	To                 DID            `json:"to"`
	Round              *int64         `json:"round"`
	Category           string         `json:"category"`
	Terms              jsontext.Value `json:"terms"`
	ValidUntil         string         `json:"valid_until"`
	EffectiveFrom      string         `json:"effective_from"`
	EffectiveUntil     string         `json:"effective_until"`
	Salt               string         `json:"agreement_salt"`
	Reason             string         `json:"reason"`
	AgreementSignature string         `json:"agreement_signature"`
	Signature          string         `json:"signature"`

	signed []jsontext.Value // what the signature may be of
}

// OAPType is the media type of OAP's documents.
const OAPType = "application/oap+json"

// OAP's prefixes of ids.
const (
	OAPNegotiation = "neg_"
	OAPProposal    = "prp_"
)

// ReadOAP reads a document in canonical form.
func ReadOAP(document jsontext.Value) (d OAPDocument, err error) {
	if err := performatives.Unmarshal(document, &d, ""); err != nil {
		return d, err
	}
	members := map[string]jsontext.Value{}
	if err := json.Unmarshal(document, &members); err != nil {
		return d, err
	}
	for _, name := range []string{"signature", "agreement_signature"} { // with and without the second
		if _, has := members[name]; !has && len(d.signed) > 0 {
			break
		}
		delete(members, name)
		data, err := canonical(members)
		if err != nil {
			return d, err
		}
		d.signed = append(d.signed, data)
	}
	return d, nil
}

// SignedBy reports whether the document's signature is a key's over the canonical document
// without it. The agreement's own signature may be left out too, since it can be made later.
func (d OAPDocument) SignedBy(k performatives.Key) bool {
	signature := Unpadded(d.Signature)
	raw, err := encoding.Strict().DecodeString(signature)
	for _, signed := range d.signed {
		if err == nil && k.Signed(signed, raw) {
			return true
		}
	}
	return false
}

// Unpadded is a text in base64url of one in base64 or base64url, padded or not.
func Unpadded(text string) string {
	return strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(text, string(base64.StdPadding)))
}

// OAPNames reports whether an id of OAP's, with its prefix or without, is one of ours.
func OAPNames(id, prefix, ours string) bool {
	return id == ours || strings.TrimPrefix(id, prefix) == ours
}

// inContext is an item of content.context with a document of OAP's.
type inContext struct {
	MimeType string         `json:"mimeType"`
	Document jsontext.Value `json:"document"`
}

// OAPContext is the content.context that a document rides in.
func OAPContext(document jsontext.Value) ([]jsontext.Value, error) {
	item, err := canonical(inContext{OAPType, document})
	return []jsontext.Value{item}, err
}

// CarriesOAP reports whether some items of a content.context have a document.
func CarriesOAP(context []jsontext.Value) bool {
	return slices.ContainsFunc(context, func(item jsontext.Value) bool {
		return len(OAPIn(slices.Concat(jsontext.Value("["), item, jsontext.Value("]")))) > 0
	})
}

// OAPIn are the documents in a content.context.
func OAPIn(context jsontext.Value) (all []jsontext.Value) {
	var items []jsontext.Value
	if json.Unmarshal(context, &items) != nil {
		return nil
	}
	for _, raw := range items {
		var item inContext
		if raw.Kind() == '{' && json.Unmarshal(raw, &item) == nil && item.MimeType == OAPType {
			all = append(all, item.Document)
		}
	}
	return all
}
