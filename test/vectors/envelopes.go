package vectors

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// An Envelope is a signed envelope, or what looks like one.
type Envelope struct {
	Name     string            `json:"name"`
	About    string            `json:"about"`
	Key      performatives.Key `json:"key"`              // that it should be signed with
	Envelope string            `json:"envelope"`         // as it is sent
	Signed   string            `json:"signed,omitzero"`  // the bytes that were signed (RFC 8785)
	Refused  string            `json:"refused,omitzero"` // malformed or signature; "" is accepted
}

func envelopes() (all []Envelope, err error) {
	signer, err := signerOf(string(buyer))
	if err != nil {
		return nil, err
	}
	other, err := signerOf(string(seller))
	if err != nil {
		return nil, err
	}
	session := performatives.SessionID("019478a3-0001-7def-8a12-000000000001")
	draft := performatives.Draft{
		ID: "019478a3-7b2c-7def-8a12-3456789abcde", Session: session, Timestamp: start, Sender: buyer,
		Body: &performatives.ProposeBody{ProposalID: "offer_1", Type: "purchase", Subject: "cups", Terms: performatives.Object(
			`{"price":89.5,"quantity":200,"rate":1e-7,"big":1e21,"zero":0.0,"größe":"½ l","\ufb33":"é\n","\ud83d\ude02":"\u20ac \"\\","nested":{"b":[1,2.50,null],"a":true}}`)},
	}
	add := func(name, about string, d performatives.Draft) (text string) {
		if err != nil {
			return ""
		}
		var envelope []byte
		var m *performatives.Message
		if envelope, err = d.Envelope(signer); err != nil {
			return ""
		}
		if m, err = performatives.Read(envelope); err != nil {
			return ""
		}
		all = append(all, Envelope{Name: name, About: about, Key: signer.Key(), Envelope: string(envelope), Signed: string(m.SigningBytes())})
		return string(envelope)
	}
	good := add("propose", "an offer with numbers, letters and members that RFC 8785 writes in one way only", draft)
	linked := draft
	linked.Link = &performatives.Link{Sequence: 3, PreviousHash: performatives.HashOf([]byte("the entry before"))}
	linked.Recipient, linked.Body = seller, &performatives.AcceptBody{ReferenceID: "offer_2"}
	add("linked", "an ACCEPT that names the entry that it answers, and its recipient", linked)
	if err != nil {
		return nil, err
	}
	signature := good[strings.Index(good, "ed25519:") : strings.Index(good, "ed25519:")+len("ed25519:")+128]
	flipped := signature[:20] + string(otherHex(signature[20])) + signature[21:]
	return append(all,
		Envelope{Name: "changed-byte", About: "the price is 99.5, and 89.5 was signed", Key: signer.Key(), Envelope: strings.Replace(good, "89.5", "99.5", 1), Refused: "signature"},
		Envelope{Name: "changed-signature", About: "one digit of the signature is another", Key: signer.Key(), Envelope: strings.Replace(good, signature, flipped, 1), Refused: "signature"},
		Envelope{Name: "other-key", About: "somebody else's key", Key: other.Key(), Envelope: good, Refused: "signature"},
		Envelope{Name: "unsigned", About: "the signature is missing", Key: signer.Key(), Envelope: strings.Replace(good, `"signature":"`+signature+`"`, "", 1), Refused: "signature"},
		Envelope{Name: "duplicate-member", About: "a member stands twice: no I-JSON", Key: signer.Key(), Envelope: strings.Replace(good, `"quantity":200`, `"quantity":200,"quantity":20`, 1), Refused: "malformed"},
	), nil
}

// otherHex is another hexadecimal digit.
func otherHex(digit byte) byte {
	if digit == '0' {
		return '1'
	}
	return '0'
}

// A Decision is an act that an SDK decided on at a head of a session, and the message id that follows from it.
type Decision struct {
	Session      performatives.SessionID `json:"sessionId"`
	Head         performatives.Hash      `json:"head"` // of the last entry; 64 zeros before the first
	Performative string                  `json:"performative"`
	Body         jsontext.Value          `json:"body"`
	Canonical    string                  `json:"canonical"` // RFC 8785 of [sessionId, head, performative, body]; of an ESCALATE without what is sealed
	Message      performatives.MessageID `json:"messageId"` // a UUID of the first 16 bytes of its SHA-256, as version 7
}

func messageIDs() (all []Decision, err error) {
	head := performatives.HashOf([]byte("the entry before"))
	for _, d := range []Decision{
		{Head: performatives.NoHash, Performative: "PROPOSE", Body: []byte(`{"proposalId":"invitation","type":"session-invitation","subject":"cups","terms":{"purpose":"buy cups","participants":["agent://widgets.co/sales/beta"]}}`)},
		{Head: head, Performative: "ACCEPT", Body: []byte(`{"referenceId":"offer_2"}`)},
		{Head: head, Performative: "REJECT", Body: []byte(`{"referenceId":"offer_2"}`)},
		{Head: head, Performative: "COUNTER", Body: []byte(`{"terms":{"price":89.50,"größe":"½ l"},"referenceId":"offer_2","proposalId":"offer_3"}`)},
		{Head: head, Performative: "ESCALATE", Body: []byte(`{"reason":"authority-limit","urgency":"medium","context":{"why":"above 90"},"referenceId":"offer_2","suggestedAction":"offer 85"}`)},
	} {
		d.Session = "019478a3-0001-7def-8a12-000000000001"
		if d.Canonical, d.Message, err = d.derived(); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// derived makes the message id of a decision.
func (d Decision) derived() (canonical string, id performatives.MessageID, err error) {
	body := map[string]jsontext.Value{}
	if err := json.Unmarshal(d.Body, &body); err != nil {
		return "", "", err
	}
	if d.Performative == "ESCALATE" { // or whoever reads the id could try out what is sealed
		delete(body, performatives.SealContext)
		delete(body, performatives.SealSuggested)
	}
	raw, err := json.Marshal([]any{d.Session, d.Head, d.Performative, body})
	if err != nil {
		return "", "", err
	}
	form, err := performatives.Canonical(raw)
	if err != nil {
		return "", "", err
	}
	sum := sha256.Sum256(form)
	b := sum[:16]
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	id, err = performatives.ParseMessageID(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
	return string(form), id, err
}
