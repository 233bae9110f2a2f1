package registry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// SchemasOptions say how terms schemas are registered.
type SchemasOptions struct {
	Store *store.Store
	Max   int // of one organisation; operators have no limit
	Log   *zap.Logger
}

// Schemas are the terms schemas that were registered at run time. A name, once
// registered, means the same schema for ever.
type Schemas struct {
	o      SchemasOptions
	bucket *store.Bucket
	work   *background.Group

	mu       sync.RWMutex
	compiled map[string]*schemas.TermsSchema
	records  map[string]api.Schema
}

// OpenSchemas reads the terms schemas, and follows them until Close.
func OpenSchemas(ctx context.Context, o SchemasOptions) (*Schemas, error) {
	bucket, err := o.Store.Bucket(ctx, api.SchemasBucket, "terms schemas, immutable", 0)
	if err != nil {
		return nil, err
	}
	s := &Schemas{o: o, bucket: bucket, work: background.New(), compiled: map[string]*schemas.TermsSchema{}, records: map[string]api.Schema{}}
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
	var record api.Schema
	err := json.Unmarshal(e.Value, &record)
	if err == nil {
		err = s.add(record)
	}
	if err != nil {
		s.o.Log.Error("terms schema", zap.String("key", e.Key), zap.Error(err))
	}
}

// add compiles a schema, unless it is in memory already.
func (s *Schemas) add(record api.Schema) error {
	s.mu.RLock()
	_, known := s.compiled[record.Name]
	s.mu.RUnlock()
	if known {
		return nil
	}
	compiled, err := schemas.CompileTerms(record.Name, record.Schema)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compiled[record.Name], s.records[record.Name] = compiled, record
	return nil
}

// Put answers schema.put: it registers a schema. The same schema again changes nothing.
func (s *Schemas) Put(ctx context.Context, c api.Caller, q api.PutSchema) (api.Schema, error) {
	_, version, err := schemas.TermsName(q.Name)
	if err != nil {
		return api.Schema{}, session.RefuseSchema(session.Fault{Path: "/name", Rule: "pattern", Message: err.Error()})
	}
	if _, isBody := schemas.Get(q.Name); isBody {
		return api.Schema{}, session.Refuse(session.Duplicate, "%q is the schema of a body", q.Name)
	}
	if _, err := schemas.CompileTerms(q.Name, q.Schema); err != nil {
		return api.Schema{}, session.RefuseSchema(session.Fault{Path: "/schema", Rule: "schema", Message: err.Error()})
	}
	if err := s.withinLimit(c.Agent, q.Name); err != nil {
		return api.Schema{}, err
	}
	record := api.Schema{Name: q.Name, Version: version, Kind: "terms", By: c.Agent, Schema: q.Schema}
	data, err := json.Marshal(record)
	if err != nil {
		return api.Schema{}, err
	}
	_, err = s.bucket.Create(ctx, schemaKey(q.Name), data)
	if errors.Is(err, store.ErrKeyExists) {
		record, err = s.existing(ctx, q)
	}
	if err == nil {
		err = s.add(record)
	}
	if err == nil {
		err = s.bucket.Sync()
	}
	if err != nil {
		return api.Schema{}, err
	}
	return record, nil
}

// withinLimit refuses a new name to an organisation that has registered many: a name
// is taken for ever, and for everybody.
func (s *Schemas) withinLimit(by performatives.Agent, name string) error {
	if by == "" {
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if _, known := s.records[name]; known {
		return nil
	}
	n := 0
	for _, r := range s.records {
		if r.By != "" && r.By.Organisation() == by.Organisation() {
			n++
		}
	}
	if n >= s.o.Max {
		return session.Refuse(session.TooLarge, "%s has registered %d terms schemas, and here an organisation has no more than that", by.Organisation(), n).
			With(map[string]int{"maxSchemas": s.o.Max})
	}
	return nil
}

// existing is the schema that has the name already, if it is the same.
func (s *Schemas) existing(ctx context.Context, q api.PutSchema) (api.Schema, error) {
	entry, err := s.bucket.Get(ctx, schemaKey(q.Name))
	if err != nil {
		return api.Schema{}, err
	}
	var old api.Schema
	if err := json.Unmarshal(entry.Value, &old); err != nil {
		return api.Schema{}, err
	}
	if !schemas.SameSchema(old.Schema, q.Schema) {
		return api.Schema{}, session.Refuse(session.Duplicate, "schema %q is registered already and never changes; register the next version under a new name, such as -v%d", q.Name, old.Version+1)
	}
	return old, nil
}

// schemaKey makes a name a bucket key, in which no dot may end the key or follow a dot.
func schemaKey(name string) string { return strings.ReplaceAll(name, ".", "=2e") }

// Lookup finds a body schema or a terms schema.
func (s *Schemas) Lookup(name string) (api.Schema, bool) {
	if text, ok := schemas.Get(name); ok {
		return api.Schema{Name: name, Kind: "body", Schema: text}, true
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	record, ok := s.records[name]
	return record, ok
}

// Get answers schema.get.
func (s *Schemas) Get(_ context.Context, _ api.Caller, q api.SchemaRef) (api.Schema, error) {
	record, ok := s.Lookup(q.Name)
	if !ok {
		return record, session.Refuse(session.SchemaUnsupported, "there is no schema %.128q", q.Name)
	}
	return record, nil
}

// List answers schema.list: the body schemas, then the terms schemas by name.
func (s *Schemas) List(context.Context, api.Caller, struct{}) (api.SchemaNames, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := []api.Schema{}
	for _, name := range schemas.Names() {
		all = append(all, api.Schema{Name: name, Kind: "body"})
	}
	terms := make([]api.Schema, 0, len(s.records))
	for _, r := range s.records {
		r.Schema = nil
		terms = append(terms, r)
	}
	slices.SortFunc(terms, func(a, b api.Schema) int { return strings.Compare(a.Name, b.Name) })
	return api.SchemaNames{Schemas: append(all, terms...)}, nil
}

// Verdict validates the terms of an offer against the schema that applies to them.
func (s *Schemas) Verdict(state *session.State, m *performatives.Message) session.TermsVerdict {
	if state.OffersInvitation(m) {
		if counter, ok := m.Body.(*performatives.CounterBody); ok {
			return verdict(schemas.ValidateInvitation(counter.Terms))
		}
		return session.TermsVerdict{} // the body schema of PROPOSE has validated them
	}
	offering, ok := m.Body.(performatives.Offering)
	name := state.SchemaFor(m)
	if !ok || name == "" {
		return session.TermsVerdict{}
	}
	s.mu.RLock()
	compiled, registered := s.compiled[name]
	s.mu.RUnlock()
	if !registered {
		return session.TermsVerdict{Unregistered: true}
	}
	return verdict(compiled.Validate(offering.Offer().Terms))
}

func verdict(faults []schemas.Fault) (v session.TermsVerdict) {
	for _, f := range faults {
		v.Faults = append(v.Faults, session.Fault(f))
	}
	return v
}
