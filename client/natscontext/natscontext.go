// Package natscontext reads the contexts of the nats command line: where a server
// is and how to log in there.
//
//	c, err := natscontext.Read("acme") // ~/.config/nats/context/acme.json
//	if err != nil {
//		return err
//	}
//	nc, err := nats.Connect(c.URL, append(c.Options(), nats.UserCredentials(c.Creds))...)
//
// github.com/nats-io/jsm.go/natscontext reads more settings, but it imports the NATS
// server, which the Go SDK must not (docs/DECISIONS.md).
package natscontext

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
)

// A Context is what parley uses of a context's file. Paths are expanded.
type Context struct {
	URL      string `json:"url"`
	Creds    string `json:"creds"` // a path
	NKey     string `json:"nkey"`  // path of a file with a seed; unused if Creds is set
	Token    string `json:"token"`
	User     string `json:"user"`
	Password string `json:"password"`
	CA       string `json:"ca"`   // a path
	Cert     string `json:"cert"` // a path
	CertKey  string `json:"key"`  // a path
}

// Read reads the context with this name, or the selected one if name is empty.
func Read(name string) (c Context, err error) {
	dir, err := folder()
	if err != nil {
		return c, err
	}
	if name == "" {
		if name, err = selected(dir); err != nil {
			return c, err
		}
	}
	if name == "" || strings.ContainsAny(name, `/\`) {
		return c, fmt.Errorf("%q is not the name of a context", name)
	}
	text, err := os.ReadFile(filepath.Join(dir, "context", name+".json"))
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	for _, path := range []*string{&c.Creds, &c.NKey, &c.CA, &c.Cert, &c.CertKey} {
		*path = expand(*path)
	}
	return c, nil
}

// Options are those for TLS, and for the token or the user and password if the
// context has neither Creds nor NKey. Creds and NKey are left to the caller.
func (c Context) Options() (options []nats.Option) {
	if c.CA != "" {
		options = append(options, nats.RootCAs(c.CA))
	}
	if c.Cert != "" {
		options = append(options, nats.ClientCert(c.Cert, c.CertKey))
	}
	switch {
	case c.Creds != "", c.NKey != "":
	case c.Token != "":
		options = append(options, nats.Token(c.Token))
	case c.User != "":
		options = append(options, nats.UserInfo(c.User, c.Password))
	}
	return options
}

// folder is where the nats command line keeps its contexts, on every system.
func folder() (string, error) {
	if dir := os.Getenv("XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "nats"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".config", "nats"), err
}

func selected(dir string) (string, error) {
	name, err := os.ReadFile(filepath.Join(dir, "context.txt"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("none is selected; name one")
	}
	return strings.TrimSpace(string(name)), err
}

// expand resolves ~ and $VARIABLES in a path.
func expand(path string) string {
	path = os.ExpandEnv(path)
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}
