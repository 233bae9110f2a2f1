package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
)

func schemasCommand() *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use: "schemas [NAME]", Short: "list, print and register JSON Schemas", Args: args(cobra.MaximumNArgs(1)),
		Long: `Lists the schemas of the acts' bodies, of the other parts of the contract (envelope,
replies, resolution) and the broker's terms schemas, or prints the one with this
name. Those of the protocol are built in and need no broker.`,
		ValidArgsFunction: completeFirst(completeSchemas),
		Example: `  parley schemas PROPOSE
  parley schemas session-view
  parley schemas service-agreement-v1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return printSchema(cmd, args[0])
			}
			return listSchemas(cmd, l)
		},
	}
	l.flags(cmd)
	cmd.AddCommand(schemasPut())
	return connects(cmd)
}

func printSchema(cmd *cobra.Command, name string) error {
	draw := func(v api.Schema) error {
		return show(cmd, v, func(render.Style) string {
			text := v.Schema.Clone()
			if text.Indent() != nil {
				text = v.Schema
			}
			return render.JSON(string(text)) + "\n"
		})
	}
	if text, ok := schemas.Get(name); ok {
		return draw(api.Schema{Name: name, Kind: schemas.Kind(name), Schema: text})
	}
	return with(cmd, func(ctx context.Context, c connection) error {
		v, err := c.Schema(ctx, name)
		if err != nil {
			return err
		}
		return draw(v)
	})
}

// listSchemas lists the broker's schemas, or the built-in ones if it has no connection.
func listSchemas(cmd *cobra.Command, l listing) error {
	var list []api.Schema
	err := with(cmd, func(ctx context.Context, c connection) (err error) {
		list, err = c.Schemas(ctx)
		return err
	})
	_, refused := errors.AsType[*session.Refusal](err)
	_, misuse := errors.AsType[misused](err)
	if refused || misuse {
		return err
	}
	if err != nil {
		for _, name := range slices.Concat(schemas.Names(), schemas.Contracts()) {
			list = append(list, api.Schema{Name: name, Kind: schemas.Kind(name)})
		}
		note(cmd, fmt.Sprintf("Only built-in schemas: %v", err))
	}
	list, next, err := pages(cmd.Context(), l, func(_ context.Context, limit int, cursor string) ([]api.Schema, string, error) {
		return schemaPage(list, limit, cursor)
	})
	if err != nil {
		return err
	}
	defer more(cmd, next)
	return show(cmd, api.SchemaNames{Schemas: list}, func(s render.Style) string { return render.Schemas(list, s) })
}

// schemaPage returns a page of a list. The cursor is the last name of the previous
// page.
func schemaPage(list []api.Schema, limit int, cursor string) (page []api.Schema, next string, err error) {
	if at := slices.IndexFunc(list, func(s api.Schema) bool { return s.Name == cursor }); at >= 0 {
		list = list[at+1:]
	}
	if len(list) > limit {
		list, next = list[:limit], list[limit-1].Name
	}
	return list, next, nil
}

func schemasPut() *cobra.Command {
	return &cobra.Command{
		Use: "put NAME FILE", Short: "register a terms schema", Args: args(cobra.ExactArgs(2)),
		Long: `Registers a JSON Schema (2020-12) for the terms of offers, under a name such as
service-agreement-v1. A registered schema never changes: register the next version
under another name. FILE - is standard input.`,
		Example: "  parley schemas put service-agreement-v1 service-agreement.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := contents(args[1])
			if err != nil {
				return err
			}
			text, err := performatives.Canonical(data)
			if err != nil {
				return fmt.Errorf("%s: %w", args[1], err)
			}
			return with(cmd, func(ctx context.Context, c connection) error {
				v, err := c.PutSchema(ctx, args[0], text)
				if err != nil {
					return err
				}
				return show(cmd, v, func(render.Style) string {
					return fmt.Sprintf("%s is registered, version %d\n", v.Name, v.Version)
				})
			})
		},
	}
}
