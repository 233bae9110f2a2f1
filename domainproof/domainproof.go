// Package domainproof asks the domain of an agent's URI for the agent's key.
//
//	err := domainproof.New().Prove(ctx, "acme.com", key, domainproof.DNS)
//
// Who controls acme.com publishes a TXT record parley-key=U… of _parley.acme.com, or
// {"keys": ["U…"]} at https://acme.com/.well-known/asp/keys.json. The file is read over HTTPS
// from public addresses only, without redirects, within 5 seconds, up to 64 KiB.
package domainproof

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/internal/publicnet"
	"github.com/parley-asp/parley/performatives"
)

// How a domain shows that a key is its own.
const (
	DNS  = "dns"
	File = "file"
)

// Where it does.
const (
	Record = "_parley."
	Prefix = "parley-key="
	Path   = "/.well-known/asp/keys.json"
)

const (
	timeout  = 5 * time.Second
	maxFile  = 64 << 10
	maxTexts = 100
)

// A Domain is asked by these.
type Domain struct {
	Client *http.Client
	TXT    func(ctx context.Context, name string) ([]string, error)
}

// New asks the public internet.
func New() Domain {
	return Domain{publicnet.Client(timeout, false), net.DefaultResolver.LookupTXT}
}

// Prove returns nil if a host publishes a key.
func (d Domain) Prove(ctx context.Context, host string, key performatives.Key, by string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	switch by {
	case DNS:
		return d.byRecord(ctx, host, key)
	case File:
		return d.byFile(ctx, host, key)
	}
	return fmt.Errorf("a domain proves a key by %s or %s", DNS, File)
}

func (d Domain) byRecord(ctx context.Context, host string, key performatives.Key) error {
	texts, err := d.TXT(ctx, Record+host)
	if err != nil {
		return fmt.Errorf("the TXT records of %s%s cannot be read", Record, host)
	}
	for _, text := range texts[:min(len(texts), maxTexts)] {
		if published, is := strings.CutPrefix(strings.TrimSpace(text), Prefix); is && published == string(key) {
			return nil
		}
	}
	return fmt.Errorf("%s%s has no TXT record %s%s", Record, host, Prefix, key)
}

func (d Domain) byFile(ctx context.Context, host string, key performatives.Key) error {
	url := "https://" + host + Path
	data, err := publicnet.Get(ctx, d.Client, url, "application/json", maxFile)
	var file struct {
		Keys []performatives.Key `json:"keys"`
	}
	switch {
	case errors.Is(err, publicnet.ErrPrivate):
		return fmt.Errorf("%s is at a private address, which is not read", host)
	case errors.Is(err, publicnet.ErrAnswer):
		return err
	case err != nil: // why is for the broker's network to know
		return fmt.Errorf("%s cannot be read", url)
	case json.Unmarshal(data, &file) != nil:
		return fmt.Errorf(`%s is not {"keys": ["U…"]}`, url)
	case !slices.Contains(file.Keys, key):
		return fmt.Errorf("%s does not have the key %s", url, key)
	}
	return nil
}
