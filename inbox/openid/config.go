package openid

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/parley-asp/parley/internal/strictyaml"
	"github.com/parley-asp/parley/performatives"
)

// A Config names a provider, and says which of its accounts is which human.
type Config struct {
	Issuer           string `yaml:"issuer"` // its URL, as its ID tokens have it
	ClientID         string `yaml:"clientId"`
	ClientSecretFile string `yaml:"clientSecretFile"` // "" for a public client
	Claim            string `yaml:"claim"`            // that names an account; "" is email, which the provider must have verified
	Required         bool   `yaml:"required"`         // a device's key alone signs nobody in

	Humans map[performatives.Agent]string `yaml:"humans"` // their values of the claim

	secret string
	whose  map[string]performatives.Agent
}

// email is the claim that counts only if the provider has verified it.
const email = "email"

// maxValue is how many bytes a claim has at most: those of the longest e-mail address.
const maxValue = 320

// Load reads a configuration and the client's secret, whose file is relative to it. Unknown fields are
// errors that name the line.
func Load(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := new(Config)
	if err := strictyaml.Decode(data, c); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := c.complete(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// complete checks everything and reads the secret.
func (c *Config) complete(dir string) error {
	if !safe(c.Issuer) {
		return fmt.Errorf("issuer: %q is not an https URL, such as https://login.acme.com", c.Issuer)
	}
	if c.ClientID == "" {
		return errors.New("clientId: there is none")
	}
	c.Claim = cmp.Or(c.Claim, email)
	if len(c.Humans) == 0 {
		return errors.New("humans: there are none, so nobody could sign in")
	}
	c.whose = map[string]performatives.Agent{}
	for who, value := range c.Humans {
		if _, err := performatives.ParseAgent(string(who)); err != nil || !who.IsHuman() {
			return fmt.Errorf("humans: %q is not a human, such as human://acme.com/alice", who)
		}
		if value == "" || len(value) > maxValue || strings.TrimSpace(value) != value || c.Claim == email && !strings.Contains(value, "@") {
			return fmt.Errorf("humans: %s: %q is no %s", who, value, c.Claim)
		}
		if other, twice := c.whose[value]; twice {
			return fmt.Errorf("humans: %s and %s are both %q", min(who, other), max(who, other), value)
		}
		c.whose[value] = who
	}
	if c.ClientSecretFile == "" {
		return nil
	}
	path := c.ClientSecretFile
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("clientSecretFile: %w", err)
	}
	if c.secret = strings.TrimSpace(string(text)); c.secret == "" {
		return fmt.Errorf("clientSecretFile: %s is empty", path)
	}
	return nil
}

// safe reports whether what goes to a URL cannot be read on the way.
func safe(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}
