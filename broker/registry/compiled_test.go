package registry

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
)

// The cache keeps the schemas that were used last, as many as their sizes allow.
func TestCompiledCache(t *testing.T) {
	t.Parallel()
	record := func(name string) api.Schema {
		return api.Schema{Name: name, Schema: jsontext.Value(`{"description":"` + strings.Repeat("x", 1000) + `"}`)}
	}
	c := newCompiledCache(1 << 20)
	get := func(name string) {
		t.Helper()
		if schema, err := c.get(record(name)); err != nil || schema.Name() != name || !c.ready(name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	get("a")
	c.most = 3 * c.bytes
	get("b")
	get("c")
	get("a")
	get("d") // for which b goes
	for name, ready := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
		if c.ready(name) != ready {
			t.Errorf("%s is in the cache: %v", name, !ready)
		}
	}
	c.forget("a")
	get("b")
	if c.bytes != c.most || len(c.entries) != 3 {
		t.Errorf("%d bytes of %d schemas, want %d", c.bytes, len(c.entries), c.most)
	}
	c.most = 1
	get("e")
	if len(c.entries) != 1 {
		t.Errorf("the newest does not replace all others: %d", len(c.entries))
	}
	bad := api.Schema{Name: "bad", Schema: jsontext.Value(`{"type":"strin"}`)}
	for range 2 {
		if _, err := c.get(bad); err == nil {
			t.Error("compiled")
		}
	}
}
