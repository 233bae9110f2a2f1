package performatives

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/nats-io/nkeys"
)

// A Key is the public half of the Ed25519 nkey ("U…") that a principal logs in
// and signs with.
type Key string

// Valid reports whether it is a user nkey.
func (k Key) Valid() bool { return k.public() != nil }

// Public is the raw key, nil where k is no user nkey.
func (k Key) Public() ed25519.PublicKey { return k.public() }

// public is the raw key, or nil where k is no user nkey. It insists on the one
// spelling of 56 characters: base32 decoding skips line breaks.
func (k Key) public() ed25519.PublicKey {
	if len(k) != 56 || strings.ContainsAny(string(k), "\r\n") {
		return nil
	}
	public, err := nkeys.Decode(nkeys.PrefixByteUser, []byte(k))
	if err != nil || len(public) != ed25519.PublicKeySize {
		return nil
	}
	return public
}

// A Signer holds the private half. An nkeys.KeyPair is one by way of NewSigner.
type Signer interface {
	Key() Key
	Sign(data []byte) ([]byte, error)
}

// ErrSignature is for a signature that is missing, ill-formed or not of the
// bytes and key that it stands by.
var ErrSignature = errors.New("the signature does not fit the envelope and the sender's key")

const signaturePrefix = "ed25519:"

// NewSigner signs with an nkey. The private key is derived from the seed once,
// here: a KeyPair derives it again for every signature, which takes longer than
// to sign.
func NewSigner(pair nkeys.KeyPair) (Signer, error) {
	public, err := pair.PublicKey()
	if err != nil {
		return nil, err
	}
	if !Key(public).Valid() {
		return nil, errors.New("want a user nkey (its seed starts with SU)")
	}
	seed, err := pair.Seed()
	if err != nil {
		return nil, err
	}
	_, raw, err := nkeys.DecodeSeed(seed)
	if err != nil {
		return nil, err
	}
	return signer{ed25519.NewKeyFromSeed(raw), Key(public)}, nil
}

// NewKey makes a key, and signs with it.
func NewKey() (Signer, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	return NewSigner(pair)
}

type signer struct {
	private ed25519.PrivateKey
	key     Key
}

func (s signer) Key() Key                         { return s.key }
func (s signer) Sign(data []byte) ([]byte, error) { return ed25519.Sign(s.private, data), nil }

// SignBytes signs bytes and writes the signature as ASP does: "ed25519:" and
// 128 hex digits.
func SignBytes(s Signer, data []byte) (string, error) {
	sig, err := s.Sign(data)
	if err != nil {
		return "", err
	}
	text := append(make([]byte, 0, len(signaturePrefix)+2*ed25519.SignatureSize), signaturePrefix...)
	return string(hex.AppendEncode(text, sig)), nil
}

// WellFormedSignature reports whether a signature is written as SignBytes does.
func WellFormedSignature(signature string) bool {
	digits, ok := strings.CutPrefix(signature, signaturePrefix)
	return ok && len(digits) == 2*ed25519.SignatureSize && isLowerHex(digits)
}

// VerifyBytes checks a signature that SignBytes wrote.
func VerifyBytes(k Key, data []byte, signature string) error {
	if !WellFormedSignature(signature) {
		return ErrSignature
	}
	var sig [ed25519.SignatureSize]byte
	if _, err := hex.Decode(sig[:], []byte(signature[len(signaturePrefix):])); err != nil {
		return ErrSignature
	}
	if !k.Signed(data, sig[:]) {
		return ErrSignature
	}
	return nil
}

// Signed reports whether a raw signature is the key's over the data.
func (k Key) Signed(data, signature []byte) bool {
	public := k.public()
	return public != nil && len(signature) == ed25519.SignatureSize && ed25519.Verify(public, data, signature)
}

// VerifySignature checks the sender's signature against the sender's key.
// Which key it was is noted in SignedBy.
func (m *Message) VerifySignature(k Key) error {
	err := VerifyBytes(k, m.SigningBytes(), m.Signature)
	if err == nil {
		m.SignedBy = k
	}
	return err
}

// Sign reads an unsigned envelope and returns it signed, in canonical form.
func Sign(envelope []byte, s Signer) ([]byte, error) {
	m, err := Read(envelope)
	if err != nil {
		return nil, err
	}
	signature, err := SignBytes(s, m.SigningBytes())
	if err != nil {
		return nil, err
	}
	signed := sealed(merge{a: m.envelope}, merge{m.integrity.without("signature"), document{new(texts).text("signature", signature)}})
	if len(signed) > MaxEnvelope {
		return nil, ErrTooLarge
	}
	return signed, nil
}
