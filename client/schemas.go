package client

import (
	"context"

	"github.com/parley-asp/parley/api"
)

// PutSchema registers a terms schema, a JSON Schema 2020-12, under a name such
// as service-agreement-v1. What is registered never changes; the same again is
// no error.
func (c *Calls) PutSchema(ctx context.Context, name string, schema any) (api.Schema, error) {
	raw, err := object("the schema", schema)
	if err != nil {
		return api.Schema{}, err
	}
	return call(ctx, c, api.SchemaPut, api.PutSchema{Name: name, Schema: raw})
}

// Schema is a body schema, such as PROPOSE, or a terms schema by name.
func (c *Calls) Schema(ctx context.Context, name string) (api.Schema, error) {
	return call(ctx, c, api.SchemaGet, api.SchemaRef{Name: name})
}

// Schemas lists all schemas, without their text.
func (c *Calls) Schemas(ctx context.Context) (all []api.Schema, err error) {
	for s, err := range pages(func(cursor string) (api.SchemaNames, error) {
		return call(ctx, c, api.SchemaList, api.ListSchemas{Limit: api.MaxPage, Cursor: cursor})
	}, func(p api.SchemaNames) ([]api.Schema, string) { return p.Schemas, p.Next }) {
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}
