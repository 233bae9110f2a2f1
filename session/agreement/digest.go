package agreement

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// An ID names an agreement: agr_ and 26 characters.
type ID string

// Valid reports whether it has the form of an id.
func (id ID) Valid() bool {
	rest, ok := strings.CutPrefix(string(id), "agr_")
	return ok && len(rest) == 26 && strings.Trim(rest, crockfordAlphabet) == ""
}

// crockford is Crockford's base32, which has no I, L, O and U.
var crockford = base32.NewEncoding(crockfordAlphabet).WithPadding(base32.NoPadding)

// IDOf is the id of the agreement on a proposal of a session.
func IDOf(session performatives.SessionID, proposal string) ID {
	sum := sha256.Sum256([]byte(string(session) + ":" + proposal))
	return ID("agr_" + crockford.EncodeToString(sum[:])[:26])
}

const crockfordAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// A Salt is the secret that the salts of all terms derive from. Whoever does not have
// it, and not the term's own salt, cannot guess a term from its digest.
type Salt [32]byte

var encoding = base64.RawURLEncoding

// ParseSalt reads 32 bytes in base64url.
func ParseSalt(text string) (s Salt, ok bool) {
	raw, err := encoding.DecodeString(text)
	return Salt(append(raw, make([]byte, max(0, len(s)-len(raw)))...)), err == nil && len(raw) == len(s)
}

// of is the salt of one term.
func (s Salt) of(name string) string {
	mac := hmac.New(sha256.New, s[:])
	mac.Write([]byte(name))
	return encoding.EncodeToString(mac.Sum(nil))
}

// A Digest is sha256- and the SHA-256 in hex.
type Digest string

func digestOf(data []byte) Digest {
	sum := sha256.Sum256(data)
	return Digest("sha256-" + hex.EncodeToString(sum[:]))
}

// digestOfTerm is the digest of [salt, name, value].
func digestOfTerm(salt, name string, value jsontext.Value) (Digest, error) {
	data, err := canonical([]any{salt, name, value})
	return digestOf(data), err
}

// salted are the salts and digests of all terms.
func (s Salt) salted(terms map[string]jsontext.Value) (salts map[string]string, digests map[string]Digest, err error) {
	salts, digests = make(map[string]string, len(terms)), make(map[string]Digest, len(terms))
	for name, value := range terms {
		salts[name] = s.of(name)
		if digests[name], err = digestOfTerm(salts[name], name, value); err != nil {
			return nil, nil, err
		}
	}
	return salts, digests, nil
}

func canonical(v any) (jsontext.Value, error) {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	return performatives.Canonical(data)
}
