package server

import (
	"crypto/tls"
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
	looked  time.Time
}

func openCertificate(files TLS, log *zap.Logger) (*certificate, error) {
	c := &certificate{files: files, log: log}
	return c, c.reload()
}

// reload reads the files. If that fails, the certificate before stays in use.
func (c *certificate) reload() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read()
}

func (c *certificate) read() error {
	c.looked, c.changed = time.Now(), c.modified()
	read, err := tls.LoadX509KeyPair(c.files.Cert, c.files.Key)
	if err != nil {
		return fmt.Errorf("TLS certificate: %w", err)
	}
	c.current = &read
	return nil
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
		if c.modified() != c.changed {
			if err := c.read(); err != nil {
				c.log.Error("the certificate's files changed and cannot be used; the one before stays in use", zap.Error(err))
			}
		}
	}
	return c.current, nil
}

// Reload reads the files of the TLS certificate again. If that fails, what was there stays in use.
func (s *Server) Reload() error {
	if s.certificate == nil {
		return nil
	}
	return s.certificate.reload()
}
