package openid_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-asp/parley/inbox/openid"
	"github.com/parley-asp/parley/performatives"
)

// load reads a configuration, beside files of a secret and of nothing.
func load(t *testing.T, text string) (*openid.Config, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"sign-in.yaml": text, "secret": "hush\n", "empty": "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return openid.Load(filepath.Join(dir, "sign-in.yaml"))
}

// The example of the docs is one.
func TestExample(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/INBOX.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```yaml\nissuer:")
	example, _, _ = strings.Cut(example, "```")
	c, err := load(t, strings.Replace("issuer:"+example, "client.secret", "secret", 1))
	if err != nil || !c.Required || c.Claim != "email" || len(c.Humans) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}

// A configuration that could sign in somebody else, or nobody, is refused.
func TestLoad(t *testing.T) {
	t.Parallel()
	const provider = "issuer: https://login.acme.com\nclientId: parley\n"
	const humans = "humans: {'human://acme.com/alice': alice@acme.com}\n"
	for text, want := range map[string]string{
		"": "the file is empty",
		"issuer: http://login.acme.com\nclientId: parley\n" + humans:            "is not an https URL",
		"issuer: https://user:hush@login.acme.com\nclientId: parley\n" + humans: "is not an https URL",
		"issuer: https://login.acme.com\n" + humans:                             "clientId: there is none",
		provider: "humans: there are none",
		provider + "humans: {'agent://acme.com/alpha': alice@acme.com}\n":                                   "is not a human",
		provider + "humans: {alice: alice@acme.com}\n":                                                      "is not a human",
		provider + "humans: {'human://acme.com/alice': ''}\n":                                               "is no email",
		provider + "humans: {'human://acme.com/alice': alice}\n":                                            "is no email",
		provider + "humans: {'human://acme.com/alice': ' alice@acme.com'}\n":                                "is no email",
		provider + "humans: {'human://acme.com/alice': a@acme.com, 'human://acme.com/bob': a@acme.com}\n":   "human://acme.com/alice and human://acme.com/bob are both",
		provider + "humans: {'human://acme.com/alice': a@acme.com, 'human://acme.com/alice': b@acme.com}\n": "already defined",
		provider + humans + "requird: true\n":                                                               "field requird not found",
		provider + humans + "clientSecretFile: empty\n":                                                     "is empty",
		provider + humans + "clientSecretFile: missing\n":                                                   "no such file",
		provider + "claim: sub\nhumans: {'human://acme.com/alice': " + strings.Repeat("x", 321) + "}\n":     "is no sub",
	} {
		if _, err := load(t, text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") && !strings.Contains(text, "hush") {
			t.Errorf("%.200q is answered %v, want %q", text, err, want)
		}
	}
	c, err := load(t, provider+humans+"clientSecretFile: secret\n")
	if err != nil {
		t.Fatal(err)
	}
	for public, good := range map[string]bool{"": false, "http://parley.acme.com": false, "https://acme.com/parley/": true, "http://127.0.0.1:8080": true, "http://localhost:8080": true} {
		if _, err := openid.New(c, public, nil); (err == nil) != good {
			t.Errorf("pages at %q are answered %v", public, err)
		}
	}
	p, err := openid.New(c, "https://parley.acme.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	alice := openid.Account{Issuer: "https://login.acme.com", Claim: "email", Value: "alice@acme.com"}
	for account, want := range map[openid.Account]performatives.Agent{
		alice: "human://acme.com/alice", {}: "",
		{Issuer: "https://login.acme.com/", Claim: "email", Value: alice.Value}:  "",
		{Issuer: alice.Issuer, Claim: "sub", Value: alice.Value}:                 "",
		{Issuer: alice.Issuer, Claim: "email", Value: "ALICE@acme.com"}:          "",
		{Issuer: alice.Issuer, Claim: "email", Value: "alice@acme.com.evil.com"}: "",
	} {
		if who := p.Human(account); who != want {
			t.Errorf("%v is %q, want %q", account, who, want)
		}
	}
}
