package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// TestConfigSchema: the published schema is that of the flags, and takes what 'parley config print' prints.
func TestConfigSchema(t *testing.T) {
	t.Parallel()
	_, flags := newServe()
	text, err := schemaOf(flags)
	if err != nil {
		t.Fatal(err)
	}
	published, err := os.ReadFile("../../docs/parley.schema.json")
	if err != nil || !bytes.Equal(published, text) {
		t.Errorf("docs/parley.schema.json is out of date: go generate ./cmd/parley; %v", err)
	}
	schema := jsonschema.MustCompileString("parley.schema.json", string(text))
	for _, c := range []struct {
		yaml  string
		valid bool
	}{
		{mustPrint(t), true},
		{"sync: always", true}, {"sync: 1s", true}, {"sync: sometimes", false}, {"sync: 0", false},
		{"keep-closed: 0", true}, {"keep-closed: 1h30m", true}, {"keep-closed: 90", false},
		{"limit-rate: 0.5", true}, {"limit-burst: 0.5", false}, {"limit-burst: -1", true},
		{"did-hosts: [acme.com]", true}, {"did-hosts: acme.com", false},
		{"log-level: loud", false}, {"dev: 1", false}, {"listen: 4222", false}, {"log-lvel: info", false}, {"config: other.yaml", false},
	} {
		if err := schema.Validate(jsonOf(t, c.yaml)); (err == nil) != c.valid {
			t.Errorf("the schema on %.40q: %v, want valid %t", c.yaml, err, c.valid)
		}
		path := filepath.Join(t.TempDir(), "parley.yaml")
		if err := os.WriteFile(path, []byte(c.yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		_, flags := newServe()
		if err := readConfig(path, flags); (err == nil) != c.valid {
			t.Errorf("parley on %.40q: %v, want valid %t", c.yaml, err, c.valid)
		}
	}
}

func mustPrint(t *testing.T) string {
	t.Helper()
	_, flags := newServe()
	text, err := effective(flags)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// jsonOf is YAML as a validator of JSON has it.
func jsonOf(t *testing.T, text string) (value any) {
	t.Helper()
	var read any
	if err := yaml.Unmarshal([]byte(text), &read); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(read)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// TestConfigRoundTrip: a file that 'parley config print' printed is the same configuration.
func TestConfigRoundTrip(t *testing.T) {
	t.Parallel()
	given, flags := newServe()
	for name, value := range map[string]string{
		"http-proxy": "10.0.0.0/8", "did-hosts": "acme.com,beta.com", "archive-after": "1h", "keep-inbox": "2h", "sync": "3s",
		"limit-rate": "2.5", "limit-cpu": "-1s", "parked-timeout": "90s", "http": "", "private-webhooks": "true", "log-level": "info",
	} {
		if err := flags.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	text, err := effective(flags)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "parley.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	read, again := newServe()
	if err := readConfig(path, again); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*serve{given, read} {
		if err := s.complete(map[*serve]*pflag.FlagSet{given: flags, read: again}[s], &bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
		s.Log = nil
	}
	if !reflect.DeepEqual(given.Options, read.Options) {
		t.Errorf("read again:\n%+v\nwant\n%+v", read.Options, given.Options)
	}
	if printed, err := effective(again); err != nil || printed != text {
		t.Errorf("printed again, %v:\n%s\nwant\n%s", err, printed, text)
	}
}

func TestUnknownKey(t *testing.T) {
	t.Parallel()
	_, flags := newServe()
	for key, want := range map[string]string{
		"logLevel": "mean log-level?", "tls_cert": "mean tls-cert?", "escalation": "mean escalations?", "colour-of-the-sky": "lists all", "": "lists all",
		"help": "lists all", "json": "lists all",
	} {
		if err := unknownKey(flags, key); !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want …%s", key, err, want)
		}
	}
}
