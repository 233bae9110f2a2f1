package server

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	ctx, cancel := context.WithTimeout(ctx, didWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, location, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/did+ld+json, application/did+json, application/json")
	answer, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s is answered %d", location, answer.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxDocument+1))
	if err == nil && len(data) > maxDocument {
		err = fmt.Errorf("it has more than %d bytes", maxDocument)
	}
	return data, err
}
