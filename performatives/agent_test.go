package performatives

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTokens holds the examples of PROTOCOL.md §1.
func TestTokens(t *testing.T) {
	t.Parallel()
	for uri, token := range map[string]string{
		"agent://acme.com/procurement/alpha": "acme_com~procurement~alpha",
		"agent://a_b.io/X":                   "a=5fb_io~=58",
		"human://acme.com/alice":             "@acme_com~alice",
		"agent://a-1.io/b.c":                 "a-1_io~b_c",
	} {
		a, err := ParseAgent(uri)
		if err != nil {
			t.Errorf("%s: %v", uri, err)
		}
		if a.Token() != token {
			t.Errorf("%s: token %s, want %s", uri, a.Token(), token)
		}
		if back, err := ParseToken(token); err != nil || back != a {
			t.Errorf("%s: back to %s, %v", token, back, err)
		}
	}
	if got := Organisation("a_b.io").Token(); got != "a=5fb_io" {
		t.Errorf("an organisation's token: %s", got)
	}
}

// TestAgents is PROTOCOL.md §1: what a principal's URI is, and what it is not.
func TestAgents(t *testing.T) {
	t.Parallel()
	for uri, organisation := range map[string]Organisation{
		"agent://acme.com/a": "acme.com", "agent://localhost/a/B/c.d/e_f/-": "localhost", "human://a.b.c/x-y": "a.b.c",
	} {
		a, err := ParseAgent(uri)
		if err != nil {
			t.Errorf("%s: %v", uri, err)
			continue
		}
		if a.Organisation() != organisation || a.IsHuman() != strings.HasPrefix(uri, "human:") || a.IsBroker() {
			t.Errorf("%s: organisation %s, human %t, broker %t", uri, a.Organisation(), a.IsHuman(), a.IsBroker())
		}
	}
	for name, uri := range map[string]string{
		"nothing": "", "no scheme": "acme.com/a", "another scheme": "http://acme.com/a", "upper-case scheme": "AGENT://acme.com/a",
		"one slash": "agent:/acme.com/a", "no path": "agent://acme.com", "empty path": "agent://acme.com/",
		"empty segment": "agent://acme.com/a//b", "trailing slash": "agent://acme.com/a/", "no host": "agent:///a",
		"upper-case host": "agent://Acme.com/a", "port": "agent://acme.com:80/a", "userinfo": "agent://u@acme.com/a",
		"query": "agent://acme.com/a?x=1", "fragment": "agent://acme.com/a#x", "percent": "agent://acme.com/%41",
		"space": "agent://acme.com/a b", "line break": "agent://acme.com/a\n", "NUL": "agent://acme.com/a\x00", "not ASCII": "agent://acme.com/ä",
		"empty label": "agent://acme..com/a", "trailing dot": "agent://acme.com./a",
		"long label": "agent://" + strings.Repeat("a", 64) + ".com/a", "wildcards": "agent://*/>", "IPv6": "agent://[::1]/a",
		"human with a path": "human://acme.com/a/b", "human without a name": "human://acme.com", "broker": "broker://U/a",
	} {
		if a, err := ParseAgent(uri); err == nil {
			t.Errorf("%s: %q was taken as %s", name, uri, a)
		}
	}
}

// TestTokenLimit is PROTOCOL.md §1: a token over 200 bytes is malformed.
func TestTokenLimit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		uri string
		ok  bool
	}{
		{"agent://a.b/" + strings.Repeat("x", 196), true},
		{"agent://a.b/" + strings.Repeat("x", 197), false},
		{"agent://a.b/" + strings.Repeat("x", 193) + "X", true}, // three bytes in the token
		{"agent://a.b/" + strings.Repeat("x", 194) + "X", false},
		{"human://a.b/" + strings.Repeat("x", 195), true}, // one byte for the @
		{"human://a.b/" + strings.Repeat("x", 196), false},
	} {
		a, err := ParseAgent(tt.uri)
		if ok := err == nil; ok != tt.ok {
			t.Errorf("%d bytes: %v", len(Agent(tt.uri).Token()), err)
		}
		if tt.ok && len(a.Token()) != MaxToken {
			t.Errorf("%d bytes; the test means %d", len(a.Token()), MaxToken)
		}
	}
}

// TestParseTokenRefuses all but what Token writes.
func TestParseTokenRefuses(t *testing.T) {
	t.Parallel()
	for _, token := range []string{
		"", "@", "acme_com", "~a", "a~", "acme.com~a", "acme_com/a", "a~=", "a~=5", "a~=5F", "a~=5g", "a~=61", "a~=2e", "a~=2f",
		"a~=00", "A~a", "a~A", "@a~b~c", "@@a~b", "a~b ", "a~*", "a~>", "a~b\n",
	} {
		if a, err := ParseToken(token); err == nil {
			t.Errorf("%q was taken as %s", token, a)
		}
	}
}

func anyAgent() *rapid.Generator[Agent] {
	return rapid.Custom(func(t *rapid.T) Agent {
		host := rapid.StringMatching(`[a-z0-9_-]{1,8}(\.[a-z0-9_-]{1,8}){0,2}`).Draw(t, "host")
		segment := rapid.StringMatching(`[A-Za-z0-9_-][A-Za-z0-9._-]{0,6}`)
		if rapid.Bool().Draw(t, "human") {
			return Agent(humanScheme + host + "/" + segment.Draw(t, "name"))
		}
		path := rapid.SliceOfN(segment, 1, 3).Draw(t, "path")
		return Agent(agentScheme + host + "/" + strings.Join(path, "/"))
	})
}

// TestTokenIsInjective: a token names one principal, is legal in a subject and
// as a consumer's name, and reads back (PROTOCOL.md §1).
func TestTokenIsInjective(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyAgent().Draw(t, "a"), anyAgent().Draw(t, "b")
		if _, err := ParseAgent(string(a)); err != nil {
			return // its token is too long
		}
		if (a == b) != (a.Token() == b.Token()) {
			t.Fatalf("%s and %s share %s", a, b, a.Token())
		}
		if strings.ContainsAny(a.Token(), ". *>/\\\t\r\n") {
			t.Fatalf("%s is no subject token", a.Token())
		}
		if back, err := ParseToken(a.Token()); err != nil || back != a {
			t.Fatalf("%s: back to %s, %v", a, back, err)
		}
	})
	// And whatever else ParseToken takes, Token writes the same.
	rapid.Check(t, func(t *rapid.T) {
		token := rapid.StringMatching(`@?[a-z0-9_~=-]{1,12}`).Draw(t, "token")
		if a, err := ParseToken(token); err == nil && a.Token() != token {
			t.Fatalf("%s: %s, whose token is %s", token, a, a.Token())
		}
	})
}

// TestIDs is PROTOCOL.md §1: session and message ids are UUIDv7 in one spelling;
// other ids, up to 128 bytes.
func TestIDs(t *testing.T) {
	t.Parallel()
	const good = "019478a3-7b2c-7def-8a12-3456789abcde"
	if id, err := ParseMessageID(good); err != nil || string(id) != good {
		t.Error(id, err)
	}
	if id, err := ParseSessionID(good); err != nil || string(id) != good {
		t.Error(id, err)
	}
	for name, id := range map[string]string{
		"nothing": "", "upper case": strings.ToUpper(good), "braces": "{" + good + "}", "urn": "urn:uuid:" + good,
		"no dashes": strings.ReplaceAll(good, "-", ""), "version 4": "019478a3-7b2c-4def-8a12-3456789abcde",
		"variant c": "019478a3-7b2c-7def-ca12-3456789abcde", "variant 7": "019478a3-7b2c-7def-7a12-3456789abcde",
		"short": good[:35], "long": good + "0", "not hex": "019478a3-7b2c-7def-8a12-3456789abcdg", "moved dash": "019478a37-b2c-7def-8a12-3456789abcde",
	} {
		if _, err := ParseMessageID(id); err == nil {
			t.Errorf("%s: %q is a message id", name, id)
		}
		if _, err := ParseSessionID(id); err == nil {
			t.Errorf("%s: %q is a session id", name, id)
		}
	}
	for id, ok := range map[string]bool{"": false, "p": true, strings.Repeat("x", 128): true, strings.Repeat("x", 129): false, strings.Repeat("ä", 65): false} {
		if ValidID(id) != ok {
			t.Errorf("ValidID of %d bytes: %t", len(id), !ok)
		}
	}
}

// TestKeys: a key has one spelling.
func TestKeys(t *testing.T) {
	t.Parallel()
	good := testKey(t, "alpha").Key()
	if !good.Valid() {
		t.Error(good)
	}
	for name, k := range map[string]Key{
		"nothing": "", "lower case": Key(strings.ToLower(string(good))), "a line break": good[:10] + "\n" + good[10:], "trailing line break": good + "\n",
		"a seed": "S" + good[1:], "an account": "A" + good[1:], "short": good[:55],
		"another letter": good[:20] + flip(good[20]) + good[21:],
	} {
		if k.Valid() {
			t.Errorf("%s: %q is a key", name, k)
		}
	}
	if a := BrokerAgent(good); !a.IsBroker() || a != "broker://"+Agent(good) {
		t.Error(a)
	}
}

func flip(c byte) Key {
	if c == 'A' {
		return "B"
	}
	return "A"
}
