package registry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/fit"
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

	mu      sync.RWMutex
	records map[string]schemaRecord
}

// A schemaRecord is what the bucket has under a name.
type schemaRecord struct {
	api.Schema
	Removed  performatives.Hash `json:"removed,omitzero"` // the hash of the canonical schema that the name meant
	revision uint64
}

// means tells whether a schema is the one that the name stands for.
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

// Put answers schema.put: it registers a schema. The same schema again changes nothing.
func (s *Schemas) Put(ctx context.Context, c api.Caller, q api.PutSchema) (api.Schema, error) {
	_, version, err := schemas.TermsName(q.Name)
	if err != nil {
		return api.Schema{}, session.RefuseSchema(session.Fault{Path: "/name", Rule: "pattern", Message: err.Error()})
	}
	if _, isBody := schemas.Get(q.Name); isBody {
		return api.Schema{}, session.Refuse(session.Duplicate, "%q is a schema of the protocol; register yours under another name", q.Name)
	}
	if known, registered := s.record(q.Name); registered && known.means(q.Schema) {
		return known.Schema, s.bucket.Sync()
	}
	if _, err := schemas.CompileTerms(q.Name, q.Schema); err != nil {
		fault := session.Fault{Path: "/schema", Rule: "schema", Message: err.Error()}
		if schemas.TooComplex(err) {
			fault.Rule = "complexity"
		}
		return api.Schema{}, session.RefuseSchema(fault)
	}
	if err := s.withinLimits(c.Agent, q); err != nil {
		return api.Schema{}, err
	}
	record := schemaRecord{Schema: api.Schema{Name: q.Name, Version: version, Kind: "terms", By: c.Agent, Schema: q.Schema}}
	err = s.write(ctx, &record, 0)
	if errors.Is(err, store.ErrKeyExists) {
		err = s.again(ctx, &record)
	}
	if err != nil {
		return api.Schema{}, err
	}
	return record.Schema, nil
}

// write stores a record if the name still is at a revision, 0 for none.
func (s *Schemas) write(ctx context.Context, record *schemaRecord, last uint64) error {
	data, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if last == 0 {
		record.revision, err = s.bucket.Create(ctx, schemaKey(record.Name), data)
	} else {
		record.revision, err = s.bucket.Update(ctx, schemaKey(record.Name), data, last)
	}
	if err != nil {
		return err
	}
	s.apply(*record)
	return s.bucket.Sync()
}

// again registers a schema under a name that is taken, if it is the schema that the
// name stands for.
func (s *Schemas) again(ctx context.Context, record *schemaRecord) error {
	old, err := s.stored(ctx, record.Name)
	switch {
	case err != nil:
		return err
	case !old.means(record.Schema.Schema):
		return session.Refuse(session.Duplicate, "schema %q is registered already and never changes; register the next version under a new name, such as -v%d", record.Name, old.Version+1)
	case old.Removed != "":
		return s.write(ctx, record, old.revision)
	}
	*record = old
	s.apply(old)
	return s.bucket.Sync()
}

func (s *Schemas) stored(ctx context.Context, name string) (record schemaRecord, err error) {
	entry, err := s.bucket.Get(ctx, schemaKey(name))
	if err != nil {
		return record, err
	}
	err = json.Unmarshal(entry.Value, &record)
	record.revision = entry.Revision
	return record, err
}

// Remove answers schema.rm, and returns the schema that was removed. Its name stays
// taken: only the same schema can be registered under it again.
func (s *Schemas) Remove(ctx context.Context, _ api.Caller, q api.SchemaRef) (api.Schema, error) {
	if _, _, err := schemas.TermsName(q.Name); err != nil {
		return api.Schema{}, noSchema(q.Name)
	}
	for range maxAttempts {
		old, err := s.stored(ctx, q.Name)
		if errors.Is(err, store.ErrNoKey) || err == nil && old.Removed != "" {
			return api.Schema{}, noSchema(q.Name)
		}
		if err != nil {
			return api.Schema{}, err
		}
		removed := old
		if removed.Removed, err = canonicalHash(old.Schema.Schema); err != nil {
			return api.Schema{}, err
		}
		removed.Schema.Schema = nil
		err = s.write(ctx, &removed, old.revision)
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		return old.Schema, err
	}
	return api.Schema{}, errContention
}

// withinLimits refuses a schema of an organisation that has registered many, or much:
// a name is taken for ever, and for everybody.
func (s *Schemas) withinLimits(by performatives.Agent, q api.PutSchema) error {
	if by == "" {
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if r, taken := s.records[q.Name]; taken && r.Removed == "" {
		return nil
	}
	names, bytes := 0, 0
	for _, r := range s.records {
		if r.By == "" || r.By.Organisation() != by.Organisation() || r.Removed != "" {
			continue
		}
		names++
		bytes += len(r.Schema.Schema)
	}
	switch {
	case names >= s.o.Max:
		return session.Refuse(session.TooLarge, "%s has registered %d terms schemas, and here an organisation has no more than that", by.Organisation(), names).
			With(map[string]int{"maxSchemas": s.o.Max})
	case len(q.Schema) > s.o.MaxBytes-bytes:
		return session.Refuse(session.TooLarge, "%s has registered %d bytes of terms schemas, and here an organisation has at most %d; this one has %d", by.Organisation(), bytes, s.o.MaxBytes, len(q.Schema)).
			With(map[string]int{"maxBytes": s.o.MaxBytes, "bytesLeft": max(0, s.o.MaxBytes-bytes)})
	}
	return nil
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
	terms := make([]api.Schema, 0, len(s.records))
	for _, r := range s.records {
		if r.Removed == "" {
			r.Schema.Schema = nil
			terms = append(terms, r.Schema)
		}
	}
	slices.SortFunc(terms, func(a, b api.Schema) int { return strings.Compare(a.Name, b.Name) })
	return append(all, terms...)
}
