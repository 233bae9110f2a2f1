package notify

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// A Config says who is told what, and how.
type Config struct {
	// Links is where people reach the inbox, such as https://parley.acme.com/inbox/.
	Links         string                                      `yaml:"links"`
	SMTP          *SMTP                                       `yaml:"smtp"`
	Organisations map[performatives.Organisation]Organisation `yaml:"organisations"`
}

// An Organisation is what one organisation wants to be told.
type Organisation struct {
	Webhooks []Webhook `yaml:"webhooks"`
	Mail     *Mail     `yaml:"mail"`
}

// A Webhook is a URL that events are posted to, signed as standardwebhooks.com says.
type Webhook struct {
	URL        string            `yaml:"url"`
	SecretFile string            `yaml:"secretFile"` // its one line is the secret: whsec_ and base64, 24 to 64 bytes
	Events     []escalation.Kind `yaml:"events"`     // by default all but views
	secret     []byte
}

// Mail is who gets mail. Addresses are of people who may decide.
type Mail struct {
	People map[performatives.Agent]string `yaml:"people"` // told when it is their turn
	Always []string                       `yaml:"always"` // told whoever's turn it is
	Events []escalation.Kind              `yaml:"events"` // by default what somebody has to act on
}

// SMTP is the server that takes mail.
type SMTP struct {
	Server       string `yaml:"server"` // host:port
	From         string `yaml:"from"`
	User         string `yaml:"user"` // "" is no login
	PasswordFile string `yaml:"passwordFile"`
	TLS          string `yaml:"tls"`    // starttls (default), tls (from the first byte), or none: for a server on this machine
	CAFile       string `yaml:"caFile"` // PEM: who vouches for the server; "" is whom this machine trusts
	host         string
	port         int
	password     string
	trusts       *x509.CertPool
}

// The ways of TLS.
const (
	startTLS = "starttls"
	fullTLS  = "tls"
	noTLS    = "none"
)

// Events that are told by default.
var (
	toHooks = []escalation.Kind{
		escalation.Opened, escalation.Claimed, escalation.Released, escalation.Assigned, escalation.Commented, escalation.Transferred,
		escalation.Reminded, escalation.Reescalated, escalation.Voted, escalation.Decided, escalation.Ended, Enrolled,
	}
	toPeople = []escalation.Kind{
		escalation.Opened, escalation.Assigned, escalation.Transferred, escalation.Reminded, escalation.Reescalated, Enrolled,
	}
)

// Load reads a file and what it refers to. It is strict: what it does not know
// is an error that names the line.
func Load(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := new(Config)
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := c.complete(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// complete checks everything and reads the secrets.
func (c *Config) complete(dir string) error {
	if u, err := url.Parse(c.Links); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return fmt.Errorf("links: %q is no http(s) URL of the inbox, such as https://parley.acme.com/inbox/", c.Links)
	}
	c.Links = strings.TrimSuffix(c.Links, "/") + "/"
	if c.SMTP != nil {
		if err := c.SMTP.complete(dir); err != nil {
			return fmt.Errorf("smtp: %w", err)
		}
	}
	for host, o := range c.Organisations {
		for n := range o.Webhooks {
			if err := o.Webhooks[n].complete(dir); err != nil {
				return fmt.Errorf("organisations: %s: webhooks: %d: %w", host, n+1, err)
			}
		}
		if o.Mail == nil {
			continue
		}
		if c.SMTP == nil {
			return fmt.Errorf("organisations: %s: mail needs smtp", host)
		}
		if err := o.Mail.complete(host); err != nil {
			return fmt.Errorf("organisations: %s: mail: %w", host, err)
		}
	}
	return nil
}

func (s *SMTP) complete(dir string) error {
	host, port, err := net.SplitHostPort(s.Server)
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	s.host = host
	if s.port, err = net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	if _, err := mail.ParseAddress(s.From); err != nil {
		return fmt.Errorf("from: %w", err)
	}
	if s.TLS == "" {
		s.TLS = startTLS
	}
	if !slices.Contains([]string{startTLS, fullTLS, noTLS}, s.TLS) {
		return fmt.Errorf("tls: %q is none of starttls, tls and none", s.TLS)
	}
	if s.CAFile != "" {
		if s.trusts, err = authorities(dir, s.CAFile); err != nil {
			return fmt.Errorf("caFile: %w", err)
		}
	}
	if s.User == "" {
		return nil
	}
	if s.TLS == noTLS {
		return errors.New("tls: a password is not sent without TLS")
	}
	s.password, err = secretIn(dir, s.PasswordFile)
	return err
}

func (w *Webhook) complete(dir string) error {
	if u, err := url.Parse(w.URL); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return fmt.Errorf("url: %q is no http(s) URL", w.URL)
	}
	text, err := secretIn(dir, w.SecretFile)
	if err != nil {
		return err
	}
	if w.secret, err = base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_")); err != nil || len(w.secret) < 24 || len(w.secret) > 64 {
		return fmt.Errorf("secretFile: %s: want whsec_ and the base64 of 24 to 64 random bytes", w.SecretFile)
	}
	return events(&w.Events, toHooks)
}

func (m *Mail) complete(host performatives.Organisation) error {
	for a, address := range m.People {
		if !a.IsHuman() || a.Organisation() != host {
			return fmt.Errorf("people: %s is no human of %s", a, host)
		}
		if _, err := mail.ParseAddress(address); err != nil {
			return fmt.Errorf("people: %s: %w", a, err)
		}
	}
	for _, address := range m.Always {
		if _, err := mail.ParseAddress(address); err != nil {
			return fmt.Errorf("always: %w", err)
		}
	}
	return events(&m.Events, toPeople)
}

// events are those asked for, or the ones by default.
func events(asked *[]escalation.Kind, otherwise []escalation.Kind) error {
	if len(*asked) == 0 {
		*asked = otherwise
	}
	for _, k := range *asked {
		if !slices.Contains(toHooks, k) && k != escalation.Viewed {
			return fmt.Errorf("events: there is no %q", k)
		}
	}
	return nil
}

func secretIn(dir, file string) (string, error) {
	if file == "" {
		return "", errors.New("a file with the secret has to be named")
	}
	data, err := read(dir, file)
	return strings.TrimSpace(string(data)), err
}

// read is a file that the configuration names, relative to it.
func read(dir, file string) ([]byte, error) {
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	return os.ReadFile(file)
}

func authorities(dir, file string) (*x509.CertPool, error) {
	data, err := read(dir, file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s has no certificate (PEM)", file)
	}
	return pool, nil
}
