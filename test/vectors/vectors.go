// Package vectors makes what any implementation of ASP can be checked with: signed envelopes, transcripts,
// agreements, the public log and signed calls, each with cases that must be refused (README.md). Keys and times
// are fixed, so the files change only when the formats do.
package vectors

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkey"
)

//go:generate go run ./gen

// Files are the vectors by file name.
func Files() (map[string][]byte, error) {
	buying, err := buy("asp/1", 1)
	if err != nil {
		return nil, err
	}
	binding, err := buy("binding/1", 2)
	if err != nil {
		return nil, err
	}
	log, err := newLog(buying, binding)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for name, of := range map[string]func() (any, error){
		"envelopes.json":   func() (any, error) { return envelopes() },
		"messageids.json":  func() (any, error) { return messageIDs() },
		"transcripts.json": func() (any, error) { return transcripts(buying, binding) },
		"brokerkeys.json":  func() (any, error) { return brokerKeys() },
		"agreements.json":  func() (any, error) { return agreements(buying, binding, log) },
		"evidence.json":    func() (any, error) { return evidence(buying) },
		"publiclog.json":   func() (any, error) { return publicLog(log) },
		"webhooks.json":    func() (any, error) { return webhooks() },
	} {
		content, err := of()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		data, err := json.Marshal(content, json.Deterministic(true), jsontext.WithIndent("  "))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = append(data, '\n')
	}
	return files, nil
}

// signerOf derives the same key from a name each time.
func signerOf(name string) (performatives.Signer, error) {
	return performatives.NewSigner(testkey.Of("parley vectors: " + name))
}
