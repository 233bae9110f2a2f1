package natscontext_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/client/natscontext"
)

// contexts writes the files of a folder such as ~/.config/nats.
func contexts(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	for name, text := range files {
		path := filepath.Join(dir, "nats", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRead(t *testing.T) {
	contexts(t, map[string]string{
		"context.txt": "full\n",
		"context/full.json": `{"description": "not used", "url": "nats://one:4222", "creds": "~/a.creds", "nkey": "$KEYS/a.nk", "token": "t",
			"user": "u", "password": "p", "ca": "${KEYS}/ca.pem", "cert": "cert.pem", "key": "/key.pem"}`,
		"context/empty.json": `{}`,
	})
	t.Setenv("HOME", "/home/ada")
	t.Setenv("KEYS", "/keys")
	full := natscontext.Context{
		URL: "nats://one:4222", Creds: "/home/ada/a.creds", NKey: "/keys/a.nk", Token: "t",
		User: "u", Password: "p", CA: "/keys/ca.pem", Cert: "cert.pem", CertKey: "/key.pem",
	}
	for name, want := range map[string]natscontext.Context{"full": full, "": full, "empty": {}} {
		if got, err := natscontext.Read(name); err != nil || got != want {
			t.Errorf("context %q: %+v, %v, want %+v", name, got, err, want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	contexts(t, map[string]string{"context/broken.json": `{`})
	for name, want := range map[string]string{
		"": "none is selected", "../acme": "not the name of a context", `a\b`: "not the name of a context",
		"nowhere": "nowhere.json", "broken": "broken: ",
	} {
		if _, err := natscontext.Read(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("context %q: %v, want an error with %q", name, err, want)
		}
	}
	contexts(t, map[string]string{"context.txt": "\n"})
	if _, err := natscontext.Read(""); err == nil {
		t.Error("an empty selection is read")
	}
}

func TestReadInHome(t *testing.T) {
	contexts(t, nil)
	home := os.Getenv("XDG_CONFIG_HOME")
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("HOME", home)
	if _, err := natscontext.Read("acme"); err == nil || !strings.Contains(err.Error(), filepath.Join(home, ".config", "nats", "context", "acme.json")) {
		t.Errorf("the error is %v", err)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		context natscontext.Context
		want    nats.Options
	}{
		"nothing":                   {natscontext.Context{}, nats.Options{}},
		"a user":                    {natscontext.Context{User: "u", Password: "p"}, nats.Options{User: "u", Password: "p"}},
		"a token before a user":     {natscontext.Context{Token: "t", User: "u"}, nats.Options{Token: "t"}},
		"credentials before either": {natscontext.Context{Creds: "a.creds", Token: "t"}, nats.Options{}},
		"a key before either":       {natscontext.Context{NKey: "a.nk", User: "u"}, nats.Options{}},
	} {
		got, err := apply(c.context)
		if err != nil || got.User != c.want.User || got.Password != c.want.Password || got.Token != c.want.Token {
			t.Errorf("%s: logs in with %q, %q, %q; %v", name, got.User, got.Password, got.Token, err)
		}
	}
	for _, c := range []natscontext.Context{{CA: "nowhere.pem"}, {Cert: "nowhere.pem", CertKey: "key.pem"}} {
		if _, err := apply(c); err == nil || !strings.Contains(err.Error(), "nowhere.pem") {
			t.Errorf("%+v: %v, want an error about its certificate", c, err)
		}
	}
}

func apply(c natscontext.Context) (o nats.Options, err error) {
	for _, set := range c.Options() {
		if err := set(&o); err != nil {
			return o, err
		}
	}
	return o, nil
}
