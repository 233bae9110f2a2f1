package broker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// termsSchemas are those registered at run time. A name, once taken, stands
// for the same schema for ever.
type termsSchemas struct {
	b      *Broker
	bucket *store.Bucket

	mu       sync.RWMutex
	compiled map[string]*schemas.TermsSchema
	records  map[string]api.Schema
}

func (b *Broker) openTerms(ctx context.Context) error {
	bucket, err := b.store.Bucket(ctx, api.SchemasBucket, "terms schemas, immutable", 0)
	if err != nil {
		return err
	}
	b.terms = &termsSchemas{b: b, bucket: bucket, compiled: map[string]*schemas.TermsSchema{}, records: map[string]api.Schema{}}
	return bucket.Watch(ctx, b.work, b.terms.saw)
}

func (t *termsSchemas) saw(e store.Entry) {
	var record api.Schema
	if e.Deleted {
		return
	}
	if err := json.Unmarshal(e.Value, &record); err != nil {
		t.b.Log.Error("terms schema", zap.String("key", e.Key), zap.Error(err))
		return
	}
	if err := t.keep(record); err != nil {
		t.b.Log.Error("terms schema", zap.String("key", e.Key), zap.Error(err))
	}
}

func (t *termsSchemas) keep(record api.Schema) error {
	t.mu.RLock()
	_, have := t.compiled[record.Name]
	t.mu.RUnlock()
	if have {
		return nil
	}
	compiled, err := schemas.CompileTerms(record.Name, record.Schema)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.compiled[record.Name], t.records[record.Name] = compiled, record
	return nil
}

// put registers a schema; the same one again changes nothing.
func (t *termsSchemas) put(ctx context.Context, by performatives.Agent, p api.PutSchema) (api.Schema, error) {
	_, version, err := schemas.TermsName(p.Name)
	if err != nil {
		return api.Schema{}, session.RefuseSchema(session.Fault{Path: "/name", Rule: "pattern", Message: err.Error()})
	}
	if _, isBody := schemas.Get(p.Name); isBody {
		return api.Schema{}, session.Refuse(session.Duplicate, "%q is the schema of a body", p.Name)
	}
	if _, err := schemas.CompileTerms(p.Name, p.Schema); err != nil {
		return api.Schema{}, session.RefuseSchema(session.Fault{Path: "/schema", Rule: "schema", Message: err.Error()})
	}
	if err := t.room(by, p.Name); err != nil {
		return api.Schema{}, err
	}
	record := api.Schema{Name: p.Name, Version: version, Kind: "terms", By: by, Schema: p.Schema}
	data, err := json.Marshal(record)
	if err != nil {
		return api.Schema{}, err
	}
	_, err = t.bucket.Create(ctx, schemaKey(p.Name), data)
	if errors.Is(err, store.ErrKeyExists) {
		return t.again(ctx, p)
	}
	if err != nil {
		return api.Schema{}, err
	}
	return record, t.keep(record)
}

// room refuses one more name of an organisation that has many: a name is taken for ever, and for
// everybody. Operators have no limit.
func (t *termsSchemas) room(by performatives.Agent, name string) error {
	if by == "" {
		return nil
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if _, again := t.records[name]; again {
		return nil
	}
	n := 0
	for _, r := range t.records {
		if r.By != "" && r.By.Organisation() == by.Organisation() {
			n++
		}
	}
	if most := t.b.Limits.Schemas; n >= most {
		return session.Refuse(session.TooLarge, "%s has registered %d terms schemas, and here an organisation has no more than that", by.Organisation(), n).
			With(map[string]int{"maxSchemas": most})
	}
	return nil
}

// schemaKey makes a name a key, which must not end with a dot nor have two in a row.
func schemaKey(name string) string { return strings.ReplaceAll(name, ".", "=2e") }

func (t *termsSchemas) again(ctx context.Context, p api.PutSchema) (api.Schema, error) {
	entry, err := t.bucket.Get(ctx, schemaKey(p.Name))
	if err != nil {
		return api.Schema{}, err
	}
	var old api.Schema
	if err := json.Unmarshal(entry.Value, &old); err != nil {
		return api.Schema{}, err
	}
	if !schemas.SameSchema(old.Schema, p.Schema) {
		return api.Schema{}, session.Refuse(session.Duplicate, "schema %q is registered already and never changes; register the next version under a new name, such as -v%d", p.Name, old.Version+1)
	}
	return old, t.keep(old)
}

// Lookup finds a body schema or a terms schema.
func (t *termsSchemas) Lookup(name string) (api.Schema, bool) {
	if text, ok := schemas.Get(name); ok {
		return api.Schema{Name: name, Kind: "body", Schema: text}, true
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	record, ok := t.records[name]
	return record, ok
}

func (t *termsSchemas) list() []api.Schema {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := []api.Schema{}
	for _, name := range schemas.Names() {
		all = append(all, api.Schema{Name: name, Kind: "body"})
	}
	terms := make([]api.Schema, 0, len(t.records))
	for _, r := range t.records {
		r.Schema = nil
		terms = append(terms, r)
	}
	slices.SortFunc(terms, func(a, b api.Schema) int { return strings.Compare(a.Name, b.Name) })
	return append(all, terms...)
}

// Verdict validates the terms of an offer by the schema that it has to fit.
func (t *termsSchemas) Verdict(s *session.State, m *performatives.Message) session.TermsVerdict {
	if s.OffersInvitation(m) {
		if counter, ok := m.Body.(*performatives.CounterBody); ok {
			return session.TermsVerdict{Faults: asFaults(schemas.ValidateInvitation(counter.Terms))}
		}
		return session.TermsVerdict{} // the body schema of PROPOSE has done it
	}
	offering, ok := m.Body.(performatives.Offering)
	name := s.SchemaFor(m)
	if !ok || name == "" {
		return session.TermsVerdict{}
	}
	t.mu.RLock()
	compiled, registered := t.compiled[name]
	t.mu.RUnlock()
	if !registered {
		return session.TermsVerdict{Unregistered: true}
	}
	return session.TermsVerdict{Faults: asFaults(compiled.Validate(offering.Offer().Terms))}
}
