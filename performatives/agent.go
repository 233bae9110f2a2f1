package performatives

import (
	"errors"
	"fmt"
	"strings"
)

// MaxToken is the longest subject token, in bytes (PROTOCOL.md §1).
const MaxToken = 200

// An Agent is the URI of a principal: agent://{org-domain}/{path…} for a
// program, human://{org-domain}/{name} for a person. The zero value is nobody.
// Only ParseAgent makes one from outside text.
type Agent string

// The schemes of a principal's URI, and that of the broker as a sender.
const (
	agentScheme  = "agent://"
	humanScheme  = "human://"
	brokerScheme = "broker://"
)

var errAgent = errors.New("want agent://org-domain/path or human://org-domain/name: " +
	"lower-case host; path segments of letters, digits, '.', '_' and '-'; no query, fragment, user or port")

// ParseAgent reads the URI of a principal.
func ParseAgent(uri string) (Agent, error) {
	rest, human := strings.CutPrefix(uri, humanScheme)
	if !human {
		var ok bool
		if rest, ok = strings.CutPrefix(uri, agentScheme); !ok {
			return "", errAgent
		}
	}
	host, path, found := strings.Cut(rest, "/")
	if !found || !validHost(host) || (human && strings.Contains(path, "/")) {
		return "", errAgent
	}
	for segment := range strings.SplitSeq(path, "/") {
		if !validSegment(segment) {
			return "", errAgent
		}
	}
	a := Agent(uri)
	if n := len(a.Token()); n > MaxToken {
		return "", fmt.Errorf("its token has %d bytes; at most %d", n, MaxToken)
	}
	return a, nil
}

// validHost takes lower-case DNS names, and `_`, which private networks use.
func validHost(host string) bool {
	if host == "" || len(host) > 253 {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 {
			return false
		}
		for _, c := range []byte(label) {
			if !lowerAlnum(c) && c != '-' && c != '_' {
				return false
			}
		}
	}
	return true
}

func validSegment(segment string) bool {
	for _, c := range []byte(segment) {
		if !lowerAlnum(c) && (c < 'A' || c > 'Z') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return segment != ""
}

func lowerAlnum(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

// BrokerAgent is how a broker with this key signs the entries of its own.
func BrokerAgent(k Key) Agent { return Agent(brokerScheme + string(k)) }

// BrokerKey is the key of a broker that signs entries of its own, "" of anybody else.
func (a Agent) BrokerKey() Key {
	k, is := strings.CutPrefix(string(a), brokerScheme)
	if !is {
		return ""
	}
	return Key(k)
}

// IsBroker reports whether the sender is a broker.
func (a Agent) IsBroker() bool { return strings.HasPrefix(string(a), brokerScheme) }

// IsHuman reports whether the principal is a person.
func (a Agent) IsHuman() bool { return strings.HasPrefix(string(a), humanScheme) }

// Organisation is the URI's host, which is who a principal belongs to; the
// envelope's orgId never decides it.
func (a Agent) Organisation() Organisation {
	_, rest, _ := strings.Cut(string(a), "://")
	host, _, _ := strings.Cut(rest, "/")
	return Organisation(host)
}

// An Organisation is the host of its principals' URIs.
type Organisation string

// Check refuses what is no host, and so nobody's organisation.
func (o Organisation) Check() error {
	if validHost(string(o)) {
		return nil
	}
	return fmt.Errorf("%q is no host: want lower case, such as acme.com", string(o))
}

// Token is the organisation as one subject token.
func (o Organisation) Token() string { return encodeToken(string(o)) }

// Token is the principal as one NATS subject token and JetStream consumer name;
// it is injective (PROTOCOL.md §1).
func (a Agent) Token() string {
	if rest, human := strings.CutPrefix(string(a), humanScheme); human {
		return "@" + encodeToken(rest)
	}
	return encodeToken(strings.TrimPrefix(string(a), agentScheme))
}

func encodeToken(s string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	b.Grow(len(s) + 8)
	for _, c := range []byte(s) {
		switch {
		case lowerAlnum(c) || c == '-':
			b.WriteByte(c)
		case c == '.':
			b.WriteByte('_')
		case c == '/':
			b.WriteByte('~')
		default:
			b.WriteByte('=')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

// ParseToken finds the principal whose token this is.
func ParseToken(token string) (Agent, error) {
	scheme, rest := agentScheme, token
	if r, human := strings.CutPrefix(token, "@"); human {
		scheme, rest = humanScheme, r
	}
	var b strings.Builder
	b.WriteString(scheme)
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; c {
		case '_':
			b.WriteByte('.')
		case '~':
			b.WriteByte('/')
		case '=':
			if i+2 >= len(rest) {
				return "", errToken
			}
			hi, lo := unhex(rest[i+1]), unhex(rest[i+2])
			if hi < 0 || lo < 0 {
				return "", errToken
			}
			b.WriteByte(byte(hi<<4 | lo)) //nolint:gosec // two hex digits make one byte
			i += 2
		default:
			b.WriteByte(c)
		}
	}
	a, err := ParseAgent(b.String())
	if err != nil || a.Token() != token {
		return "", errToken
	}
	return a, nil
}

var errToken = errors.New("not the token of a principal")

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}
