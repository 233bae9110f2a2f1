package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"
)

// lookEvery bounds how often handshakes look whether the files of a certificate changed.
const lookEvery = 10 * time.Second

// A certificate is read again when its files change. Open connections keep the one they began with.
type certificate struct {
	files TLS
	log   *zap.Logger

	mu      sync.Mutex
	current *tls.Certificate
	changed [2]time.Time // of the files, when they were last read, well or not
	from    time.Time    // when what was read last becomes valid; zero if it is
	looked  time.Time
	warned  time.Time // that it has to be renewed
}

func openCertificate(files TLS, log *zap.Logger) (*certificate, error) {
	c := &certificate{files: files, log: log}
	read, err := c.read()
	if c.current = read; err == nil {
		c.warn(time.Now())
	}
	return c, err
}

// warnEvery is how often the log says that the certificate has to be renewed.
const warnEvery = 24 * time.Hour

// warn is called under mu.
func (c *certificate) warn(now time.Time) {
	if why := renew(c.current.Leaf, now); why != "" && now.Sub(c.warned) >= warnEvery {
		c.warned = now
		c.log.Warn(why)
	}
}

// read reads the files; under mu. What it returns is not yet in use.
func (c *certificate) read() (*tls.Certificate, error) {
	c.looked, c.changed, c.from = time.Now(), c.modified(), time.Time{}
	read, err := tls.LoadX509KeyPair(c.files.Cert, c.files.Key)
	if err != nil {
		return nil, fmt.Errorf("TLS certificate: %w", err)
	}
	return &read, nil
}

// renewed is read of files that replace a certificate in use: only one that is valid now does.
func (c *certificate) renewed() (*tls.Certificate, error) {
	read, err := c.read()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if now.Before(read.Leaf.NotBefore) {
		c.from = read.Leaf.NotBefore
	}
	if read.Leaf.Equal(c.current.Leaf) {
		return read, nil // it is in use, as the operator knows
	}
	return read, invalid(read.Leaf, now)
}

// invalid says that a certificate has expired, or is not valid yet.
func invalid(leaf *x509.Certificate, now time.Time) error {
	if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return errors.New(renew(leaf, now))
	}
	return nil
}

// reload reads the files. use puts what they have into use.
func (c *certificate) reload() (use func(), err error) {
	if c == nil {
		return func() {}, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.changed
	read, err := c.renewed()
	changed := c.changed
	if err == nil { // until it is in use: another part of the reload may fail
		c.changed = before
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.current, c.changed, c.warned = read, changed, time.Time{}
		c.warn(time.Now())
	}, err
}

// expires is when the certificate in use is no longer valid; zero without one.
func (c *certificate) expires() time.Time {
	if c == nil {
		return time.Time{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current.Leaf.NotAfter
}

// warning says that the certificate in use has to be renewed; empty while it has not.
func (c *certificate) warning(now time.Time) string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return renew(c.current.Leaf, now)
}

// expiresToday is so soon that the hour counts.
const expiresToday = 48 * time.Hour

func renew(leaf *x509.Certificate, now time.Time) string {
	switch {
	case now.Before(leaf.NotBefore):
		return "the certificate of --tls-cert is not valid before " + moment(leaf.NotBefore, now)
	case now.After(leaf.NotAfter):
		return "the certificate of --tls-cert expired on " + moment(leaf.NotAfter, now)
	case leaf.NotAfter.Sub(now) < expiresSoon:
		return "the certificate of --tls-cert expires on " + moment(leaf.NotAfter, now)
	default:
		return ""
	}
}

// moment is a day, and the time of one that is near.
func moment(at, now time.Time) string {
	if at.Sub(now).Abs() < expiresToday {
		return at.UTC().Format("2006-01-02 15:04 MST")
	}
	return at.UTC().Format(time.DateOnly)
}

// modified is zero for a file that cannot be read.
func (c *certificate) modified() (at [2]time.Time) {
	for i, file := range []string{c.files.Cert, c.files.Key} {
		if info, err := os.Stat(file); err == nil {
			at[i] = info.ModTime()
		}
	}
	return at
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) >= lookEvery {
		c.looked = time.Now()
		if c.modified() != c.changed || !c.from.IsZero() && c.looked.After(c.from) {
			if read, err := c.renewed(); err == nil {
				c.current, c.warned = read, time.Time{}
			} else {
				c.log.Error("the certificate's files changed and cannot be used; the one before stays in use", zap.Error(err))
			}
		}
		c.warn(c.looked)
	}
	return c.current, nil
}
