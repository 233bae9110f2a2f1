package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
)

// natsContext reads a context of the nats command line: where its server is and
// how to log in there. A broker needs no key of ASP in it, unlike package client.
func natsContext(name string) (url, creds string, options []nats.Option, err error) {
	if strings.ContainsAny(name, `/\`) {
		return "", "", nil, fmt.Errorf("--context: %q is no context's name", name)
	}
	config, err := os.UserConfigDir()
	if err != nil {
		return "", "", nil, err
	}
	data, err := os.ReadFile(filepath.Join(config, "nats", "context", name+".json"))
	if err != nil {
		return "", "", nil, fmt.Errorf("--context %s: %w", name, err)
	}
	var c struct {
		URL      string `json:"url"`
		Creds    string `json:"creds"`
		NKey     string `json:"nkey"` // a file
		User     string `json:"user"`
		Password string `json:"password"`
		Token    string `json:"token"`
		Cert     string `json:"cert"`
		CertKey  string `json:"key"`
		CA       string `json:"ca"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return "", "", nil, fmt.Errorf("--context %s: %w", name, err)
	}
	if c.CA != "" {
		options = append(options, nats.RootCAs(c.CA))
	}
	if c.Cert != "" {
		options = append(options, nats.ClientCert(c.Cert, c.CertKey))
	}
	switch {
	case c.Creds != "":
	case c.NKey != "":
		option, err := nats.NkeyOptionFromSeed(c.NKey)
		if err != nil {
			return "", "", nil, fmt.Errorf("--context %s: %w", name, err)
		}
		options = append(options, option)
	case c.Token != "":
		options = append(options, nats.Token(c.Token))
	case c.User != "":
		options = append(options, nats.UserInfo(c.User, c.Password))
	}
	return c.URL, c.Creds, options, nil
}
