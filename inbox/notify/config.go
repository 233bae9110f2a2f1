package notify

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/internal/strictyaml"
	"github.com/parley-asp/parley/internal/webhook"
	"github.com/parley-asp/parley/performatives"
)

// A Config determines who is notified of what, and how.
type Config struct {
	// Links is the URL of the inbox, such as https://parley.acme.com/inbox/.
	Links         string                                      `yaml:"links"`
	SMTP          *SMTP                                       `yaml:"smtp"`
	Organisations map[performatives.Organisation]Organisation `yaml:"organisations"`
}

// An Organisation holds the targets of one organisation.
type Organisation struct {
	Webhooks []Webhook `yaml:"webhooks"`
	Mail     *Mail     `yaml:"mail"`
}

// A Webhook is a URL to which events are posted, signed as in standardwebhooks.com.
type Webhook struct {
	URL        string            `yaml:"url"`
	SecretFile string            `yaml:"secretFile"` // one line: whsec_ and the base64 of 24 to 64 bytes
	Events     []escalation.Kind `yaml:"events"`     // default: all but views
	secret     []byte
}

// Mail configures who gets mail.
type Mail struct {
	People map[performatives.Agent]string `yaml:"people"` // get mail when they are asked
	Always []string                       `yaml:"always"` // get mail whoever is asked
	Events []escalation.Kind              `yaml:"events"` // default: those that need somebody to act
}

// SMTP is the mail server.
type SMTP struct {
	Server       string `yaml:"server"` // host:port
	From         string `yaml:"from"`
	User         string `yaml:"user"` // "" for no login
	PasswordFile string `yaml:"passwordFile"`
	TLS          string `yaml:"tls"`    // starttls (default), tls (from the first byte), or none (for a server on this machine)
	CAFile       string `yaml:"caFile"` // PEM certificates of the server's CA; "" for those of the system
	host         string
	port         int
	password     string
	roots        *x509.CertPool
}

// The values of SMTP.TLS.
const (
	startTLS = "starttls"
	fullTLS  = "tls"
	noTLS    = "none"
)

// The default events. webhookEvents are also all events besides views.
var (
	webhookEvents = []escalation.Kind{
		escalation.Opened, escalation.Claimed, escalation.Released, escalation.Assigned, escalation.Commented, escalation.Transferred,
		escalation.Reminded, escalation.Reescalated, escalation.Voted, escalation.Decided, escalation.Ended, Enrolled, Asked, DueSoon, Overdue,
	}
	mailEvents = []escalation.Kind{
		escalation.Opened, escalation.Assigned, escalation.Transferred, escalation.Reminded, escalation.Reescalated, Enrolled, Asked, DueSoon, Overdue,
	}
)

// Load reads a configuration and the files that it refers to. Unknown fields are
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

// complete checks everything and reads the secrets.
func (c *Config) complete(dir string) error {
	if u, err := url.Parse(c.Links); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return fmt.Errorf("links: %q is not an http(s) URL of the inbox, such as https://parley.acme.com/inbox/", c.Links)
	}
	c.Links = strings.TrimSuffix(c.Links, "/") + "/"
	if c.SMTP != nil {
		if err := c.SMTP.complete(dir); err != nil {
			return fmt.Errorf("smtp: %w", err)
		}
	}
	for host, o := range c.Organisations {
		if err := host.Check(); err != nil {
			return fmt.Errorf("organisations: %w", err)
		}
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
		return fmt.Errorf("tls: %q is not starttls, tls or none", s.TLS)
	}
	if s.CAFile != "" {
		if s.roots, err = certificates(dir, s.CAFile); err != nil {
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
		return fmt.Errorf("url: %q is not an http(s) URL", w.URL)
	}
	text, err := secretIn(dir, w.SecretFile)
	if err != nil {
		return err
	}
	if w.secret, err = webhook.Secret(text); err != nil {
		return fmt.Errorf("secretFile: %s: %w", w.SecretFile, err)
	}
	return events(&w.Events, webhookEvents)
}

func (m *Mail) complete(host performatives.Organisation) error {
	for a, address := range m.People {
		if !a.IsHuman() || a.Organisation() != host {
			return fmt.Errorf("people: %s is not a human of %s", a, host)
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
	return events(&m.Events, mailEvents)
}

// events checks the configured events, or sets the default.
func events(kinds *[]escalation.Kind, byDefault []escalation.Kind) error {
	if len(*kinds) == 0 {
		*kinds = byDefault
	}
	for _, k := range *kinds {
		if !slices.Contains(webhookEvents, k) && k != escalation.Viewed && k != Digest {
			return fmt.Errorf("events: there is no %q", k)
		}
	}
	return nil
}

func secretIn(dir, file string) (string, error) {
	if file == "" {
		return "", errors.New("no file with the secret is configured")
	}
	data, err := read(dir, file)
	return strings.TrimSpace(string(data)), err
}

// read reads a file whose name may be relative to the configuration.
func read(dir, file string) ([]byte, error) {
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	return os.ReadFile(file)
}

func certificates(dir, file string) (*x509.CertPool, error) {
	data, err := read(dir, file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s has no PEM certificate", file)
	}
	return pool, nil
}
