package client

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

// Context connects as a context of the nats command line says, "" being the
// selected one: its url where [Connect] is given none, and its creds or nkey,
// which sign too, or its user and password or token, which take a [Seed] beside
// them to sign with.
func Context(name string) Option {
	return func(c *config) error {
		ctx, err := readContext(name)
		if err != nil {
			return fmt.Errorf("NATS context: %w", err)
		}
		if c.url == "" {
			c.url = ctx.URL
		}
		return ctx.apply(c)
	}
}

// natsContext is what is used of a context's file.
type natsContext struct {
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

func (ctx natsContext) apply(c *config) error {
	if ctx.CA != "" {
		c.login = append(c.login, nats.RootCAs(expand(ctx.CA)))
	}
	if ctx.Cert != "" {
		c.login = append(c.login, nats.ClientCert(expand(ctx.Cert), expand(ctx.CertKey)))
	}
	switch {
	case ctx.Creds != "":
		return Creds(expand(ctx.Creds))(c)
	case ctx.NKey != "":
		return SeedFile(expand(ctx.NKey))(c)
	case ctx.Token != "":
		c.login = append(c.login, nats.Token(ctx.Token))
	case ctx.User != "":
		c.login = append(c.login, nats.UserInfo(ctx.User, ctx.Password))
	}
	return nil
}

func readContext(name string) (ctx natsContext, err error) {
	dir, err := contextFolder()
	if err != nil {
		return ctx, err
	}
	if name == "" {
		selected, err := os.ReadFile(filepath.Join(dir, "context.txt"))
		if errors.Is(err, fs.ErrNotExist) {
			return ctx, errors.New("none is selected; name one")
		}
		if err != nil {
			return ctx, err
		}
		name = strings.TrimSpace(string(selected))
	}
	if name == "" || strings.ContainsAny(name, `/\`) {
		return ctx, fmt.Errorf("%q is no context's name", name)
	}
	text, err := os.ReadFile(filepath.Join(dir, "context", name+".json"))
	if err != nil {
		return ctx, err
	}
	if err := json.Unmarshal(text, &ctx); err != nil {
		return ctx, fmt.Errorf("%s: %w", name, err)
	}
	return ctx, nil
}

// contextFolder is where the nats command line keeps its contexts.
func contextFolder() (string, error) {
	if dir := os.Getenv("XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "nats"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".config", "nats"), err
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
