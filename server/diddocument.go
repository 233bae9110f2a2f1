package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/parley-asp/parley/internal/publicnet"
)

// Bounds of a DID document, which is fetched only while an operator registers it.
const (
	didWithin   = 5 * time.Second
	maxDocument = 64 << 10 // bytes
)

var errDIDHost = errors.New("its host is none of those that --did-hosts lists")

// didDocuments reads DID documents of the hosts that are listed, at public addresses, and
// follows no redirect.
func didDocuments(hosts []string) func(ctx context.Context, url string) ([]byte, error) {
	client := publicnet.Client(didWithin, false)
	return func(ctx context.Context, url string) ([]byte, error) { return fetchDID(ctx, client, hosts, url) }
}

func fetchDID(ctx context.Context, client *http.Client, hosts []string, location string) ([]byte, error) {
	u, err := url.Parse(location)
	if err != nil || u.Scheme != "https" || !slices.Contains(hosts, u.Host) {
		return nil, errDIDHost
	}
	return publicnet.Get(ctx, client, location, "application/did+ld+json, application/did+json, application/json", maxDocument)
}
