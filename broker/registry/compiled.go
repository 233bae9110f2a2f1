package registry

import (
	"sync"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/schemas"
)

// maxCompiled bounds the memory of compiled terms schemas. One that is not in the cache
// is compiled again when an offer names it.
const maxCompiled = 64 << 20

// A compiledCache compiles terms schemas when they are first needed, each once, and
// keeps those that were used last.
type compiledCache struct {
	mu      sync.Mutex
	most    int // bytes
	bytes   int
	uses    int
	entries map[string]*compiled
}

// A compiled is a terms schema that is compiled, or is being compiled.
type compiled struct {
	compile func() (*schemas.TermsSchema, error)
	size    int // 0 while it is being compiled
	used    int // the cache's uses when it was last used
}

func newCompiledCache(most int) *compiledCache {
	return &compiledCache{most: most, entries: map[string]*compiled{}}
}

// ready reports whether get will not have to compile.
func (c *compiledCache) ready(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[name]
	return e != nil && e.size > 0
}

// get compiles a schema unless it is in the cache.
func (c *compiledCache) get(record api.Schema) (*schemas.TermsSchema, error) {
	c.mu.Lock()
	e := c.entries[record.Name]
	if e == nil {
		e = &compiled{compile: sync.OnceValues(func() (*schemas.TermsSchema, error) {
			return schemas.CompileTerms(record.Name, record.Schema)
		})}
		c.entries[record.Name] = e
	}
	c.uses++
	e.used = c.uses
	c.mu.Unlock()
	t, err := e.compile()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.size == 0 && c.entries[record.Name] == e {
		e.size = len(record.Schema)
		if err == nil {
			e.size = t.Size()
		}
		c.bytes += e.size
		c.evict(e)
	}
	return t, err
}

// evict removes the schemas that have not been used for longest, except the newest.
func (c *compiledCache) evict(newest *compiled) {
	for c.bytes > c.most {
		oldest := ""
		for name, e := range c.entries {
			if e.size > 0 && e != newest && (oldest == "" || e.used < c.entries[oldest].used) {
				oldest = name
			}
		}
		if oldest == "" {
			return
		}
		c.remove(oldest)
	}
}

func (c *compiledCache) remove(name string) {
	if e := c.entries[name]; e != nil {
		delete(c.entries, name)
		c.bytes -= e.size
	}
}

// forget removes a schema that is no longer registered.
func (c *compiledCache) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(name)
}
