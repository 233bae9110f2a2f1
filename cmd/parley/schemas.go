package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
)

func schemasCommand() *cobra.Command {
	var q api.ListSchemas
	cmd := lists(&cobra.Command{
		Use: "schemas [NAME]", Short: "list, print and register JSON Schemas", Args: args(cobra.MaximumNArgs(1)),
		Long: `Lists the schemas of the acts' bodies, of the other parts of the contract (envelope,
replies, resolution) and the broker's terms schemas, or prints the one with this
name. Those of the protocol are built in and need no broker.`,
		ValidArgsFunction: completeFirst(completeSchemas),
		Example: `  parley schemas PROPOSE
  parley schemas session-view
  parley schemas service-agreement-v1`,
	}, api.SchemaList, &q, nil, drawSchemas)
	list := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return printSchema(cmd, args[0])
		}
		err := list(cmd, args)
		_, refused := errors.AsType[*session.Refusal](err)
		_, misuse := errors.AsType[misused](err)
		if err == nil || refused || misuse {
			return err
		}
		note(cmd, fmt.Sprintf("Only built-in schemas: %v", err))
		return listBuiltIn(cmd)
	}
	cmd.AddCommand(schemasPut())
	return connects(cmd)
}

func drawSchemas(p api.SchemaNames, s render.Style) string { return render.Schemas(p.Schemas, s) }

// listBuiltIn lists schemas without a broker, whose cursors are names too.
func listBuiltIn(cmd *cobra.Command) error {
	limit, err := cmd.Flags().GetInt("limit")
	if err != nil {
		return err
	}
	names := slices.Concat(schemas.Names(), schemas.Contracts())
	names = names[slices.Index(names, text(cmd, "cursor"))+1:]
	var list api.SchemaNames
	if limit > 0 && len(names) > limit {
		names, list.Next = names[:limit], names[limit-1]
	}
	for _, name := range names {
		list.Schemas = append(list.Schemas, api.Schema{Name: name, Kind: schemas.Kind(name)})
	}
	defer more(cmd, list.Next)
	return show(cmd, list, func(s render.Style) string { return drawSchemas(list, s) })
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
