package registry

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// SchemasOptions say how terms schemas are registered.
type SchemasOptions struct {
	Store    *store.Store
	Max      int // names that one organisation registers; operators have no limits
	MaxBytes int // of all schemas that one organisation registers
	Log      *zap.Logger
}

// Schemas are the terms schemas that were registered at run time. A name, once
// registered, means the same schema for ever, also after it was removed.
type Schemas struct {
	o        SchemasOptions
	bucket   *store.Bucket
	work     *background.Group
	compiled *compiledCache

	mu      sync.RWMutex // of o.Max and o.MaxBytes, too
	records map[string]schemaRecord
}

// A schemaRecord is what the bucket has under a name.
type schemaRecord struct {
	api.Schema
	Removed  performatives.Hash `json:"removed,omitzero"` // the hash of the canonical schema that the name meant
	revision uint64
}

// means reports whether a schema is the one that the name stands for.
func (r schemaRecord) means(schema jsontext.Value) bool {
	if r.Removed == "" {
		return schemas.SameSchema(r.Schema.Schema, schema)
	}
	hash, err := canonicalHash(schema)
	return err == nil && hash == r.Removed
}

func canonicalHash(schema jsontext.Value) (performatives.Hash, error) {
	canonical, err := performatives.Canonical(schema)
	return performatives.HashOf(canonical), err
}

// OpenSchemas reads the terms schemas, and follows them until Close. None is compiled
// before an offer names it.
func OpenSchemas(ctx context.Context, o SchemasOptions) (*Schemas, error) {
	bucket, err := o.Store.Bucket(ctx, api.SchemasBucket, "terms schemas, immutable", 0)
	if err != nil {
		return nil, err
	}
	s := &Schemas{o: o, bucket: bucket, work: background.New(), compiled: newCompiledCache(maxCompiled), records: map[string]schemaRecord{}}
	if err := bucket.Watch(ctx, s.work, s.saw); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// SetLimits has other limits from now on, as SchemasOptions say them.
func (s *Schemas) SetLimits(names, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.o.Max, s.o.MaxBytes = names, bytes
}

// Close stops following the bucket.
func (s *Schemas) Close() { s.work.Close() }

// saw takes a change of the bucket into memory.
func (s *Schemas) saw(e store.Entry) {
	if e.Deleted {
		return
	}
	var record schemaRecord
	if err := json.Unmarshal(e.Value, &record); err != nil {
		s.o.Log.Error("terms schema", zap.String("key", e.Key), zap.Error(err))
		return
	}
	record.revision = e.Revision
	s.apply(record)
}

// apply takes a record into memory, unless memory has a later one.
func (s *Schemas) apply(record schemaRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if record.revision <= s.records[record.Name].revision {
		return
	}
	s.records[record.Name] = record
	if record.Removed != "" {
		s.compiled.forget(record.Name)
	}
}

// record is what memory has under a name.
func (s *Schemas) record(name string) (record schemaRecord, registered bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	record, registered = s.records[name]
	return record, registered && record.Removed == ""
}

// schemaKey makes a name a bucket key, in which no dot may end the key or follow a dot.
func schemaKey(name string) string { return strings.ReplaceAll(name, ".", "=2e") }

// Lookup finds a schema of the protocol or a terms schema.
func (s *Schemas) Lookup(name string) (api.Schema, bool) {
	if text, ok := schemas.Get(name); ok {
		return api.Schema{Name: name, Kind: schemas.Kind(name), Schema: text}, true
	}
	record, ok := s.record(name)
	return record.Schema, ok
}

func noSchema(name string) error {
	return session.Refuse(session.SchemaUnsupported, "there is no schema %.128q", name)
}

// Get answers schema.get.
func (s *Schemas) Get(_ context.Context, _ api.Caller, q api.SchemaRef) (api.Schema, error) {
	record, ok := s.Lookup(q.Name)
	if !ok {
		return record, noSchema(q.Name)
	}
	return record, nil
}

// List answers schema.list: the schemas of the bodies and of the rest of the contract,
// then the terms schemas by name.
func (s *Schemas) List(_ context.Context, _ api.Caller, q api.ListSchemas) (api.SchemaNames, error) {
	page := api.NewPage[api.Schema](q.Limit)
	fixed := published()
	at := slices.Index(fixed, q.Cursor)
	for n, row := range s.names() {
		if q.Cursor != "" && (n <= at || at < 0 && (n < len(fixed) || row.Name <= q.Cursor)) {
			continue
		}
		if !page.Add(row, fit.Size(row)) {
			return api.SchemaNames{Schemas: page.Items, Next: page.Items[len(page.Items)-1].Name}, nil
		}
	}
	return api.SchemaNames{Schemas: page.Items}, nil
}

// published are the schemas that are part of the program.
func published() []string { return slices.Concat(schemas.Names(), schemas.Contracts()) }

// names are all schemas in the order of schema.list, without their text.
func (s *Schemas) names() []api.Schema {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all []api.Schema
	for _, name := range published() {
		all = append(all, api.Schema{Name: name, Kind: schemas.Kind(name)})
	}
	for _, name := range slices.Sorted(maps.Keys(s.records)) {
		if r := s.records[name]; r.Removed == "" {
			r.Schema.Schema = nil
			all = append(all, r.Schema)
		}
	}
	return all
}
