package registry

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

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/publicnet"
	"github.com/parley-asp/parley/performatives"
)

// Where a domain publishes keys.
const (
	proofRecord = "_parley."
	proofPrefix = "parley-key="
	proofPath   = "/.well-known/asp/keys.json"
)

const (
	proofTimeout  = 5 * time.Second
	maxProofFile  = 64 << 10
	maxProofTexts = 100
)

// A Domain asks the domain of an agent's URI whether a key is the agent's.
//
// Who controls acme.com publishes a TXT record parley-key=U… of _parley.acme.com, or
// {"keys": ["U…"]} at https://acme.com/.well-known/asp/keys.json. The file is read over HTTPS
// from public addresses only, without redirects, within 5 seconds, up to 64 KiB.
type Domain struct {
	Client *http.Client
	TXT    func(ctx context.Context, name string) ([]string, error)
}

// PublicDomain asks the public internet.
func PublicDomain() Domain {
	return Domain{publicnet.Client(proofTimeout, false), net.DefaultResolver.LookupTXT}
}

// Prove returns nil if a host publishes a key.
func (d Domain) Prove(ctx context.Context, host string, key performatives.Key, by string) error {
	ctx, cancel := context.WithTimeout(ctx, proofTimeout)
	defer cancel()
	switch by {
	case api.ByDNS:
		return d.byRecord(ctx, host, key)
	case api.ByFile:
		return d.byFile(ctx, host, key)
	}
	return fmt.Errorf("a domain proves a key by %s or %s", api.ByDNS, api.ByFile)
}

func (d Domain) byRecord(ctx context.Context, host string, key performatives.Key) error {
	texts, err := d.TXT(ctx, proofRecord+host)
	if err != nil {
		return fmt.Errorf("the TXT records of %s%s cannot be read", proofRecord, host)
	}
	for _, text := range texts[:min(len(texts), maxProofTexts)] {
		if published, is := strings.CutPrefix(strings.TrimSpace(text), proofPrefix); is && published == string(key) {
			return nil
		}
	}
	return fmt.Errorf("%s%s has no TXT record %s%s", proofRecord, host, proofPrefix, key)
}

func (d Domain) byFile(ctx context.Context, host string, key performatives.Key) error {
	url := "https://" + host + proofPath
	data, err := publicnet.Get(ctx, d.Client, url, "application/json", maxProofFile)
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
