package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
)

func schemasCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "schemas [NAME]", Short: "list or print JSON Schemas, of acts and of terms", Args: args(cobra.MaximumNArgs(1)),
		Long: `Without a name: lists the schemas of the bodies of all acts and, where there is a
broker, the terms schemas that are registered there. With a name: prints it. Those
of the bodies are in this program and need no broker.`,
		Example: `  parley schemas PROPOSE
  parley schemas service-agreement-v1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return printSchema(cmd, args[0])
			}
			return listSchemas(cmd)
		},
	}
	cmd.AddCommand(schemasPut())
	return connects(cmd)
}

func printSchema(cmd *cobra.Command, name string) error {
	draw := func(v api.Schema) error {
		return show(cmd, v, func(render.Style) string {
			text := v.Schema.Clone()
			if text.Indent() != nil {
				return string(v.Schema) + "\n"
			}
			return string(text) + "\n"
		})
	}
	if text, ok := schemas.Get(name); ok {
		return draw(api.Schema{Name: name, Kind: "body", Schema: text})
	}
	return with(cmd, func(ctx context.Context, c connection) error {
		v, err := c.Schema(ctx, name)
		if err != nil {
			return err
		}
		return draw(v)
	})
}

// listSchemas asks the broker, and does without it where there is none.
func listSchemas(cmd *cobra.Command) error {
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
		for _, name := range schemas.Names() {
			list = append(list, api.Schema{Name: name, Kind: "body"})
		}
		note(cmd, fmt.Sprintf("without the terms schemas of a broker: %v", err))
	}
	return show(cmd, api.SchemaNames{Schemas: list}, func(s render.Style) string { return render.Schemas(list, s) })
}

func schemasPut() *cobra.Command {
	return &cobra.Command{
		Use: "put NAME FILE", Short: "register a terms schema", Args: args(cobra.ExactArgs(2)),
		Long: `Registers a JSON Schema (2020-12) for the terms of offers, under a name such as
service-agreement-v1. What is registered never changes: register the next version
under a name of its own. The same again is no error. FILE - is standard input.`,
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
