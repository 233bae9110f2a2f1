package registry

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

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
