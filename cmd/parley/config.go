package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/internal/natslogin"
	"github.com/parley-asp/parley/internal/strictyaml"
	"github.com/parley-asp/parley/store"
)

//go:generate go run . config schema --out ../../docs/parley.schema.json

func configCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "config", Short: "check and print the configuration of 'parley serve'",
		Long: `The configuration file of 'parley serve --config FILE' is YAML. Its keys are the
flags of serve without --, lists are YAML lists, and durations are texts such as
30s. A flag on the command line overrides the environment, which overrides the
file. Relative paths are relative to the working directory, as on the command
line. FILE is PARLEY_CONFIG or ` + configFile + ` by default.`,
	}, configCheck(), configPrint(), configSchema())
}

// namedConfig is the file that a command reads.
func namedConfig(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	env, _ := lookup("PARLEY_CONFIG")
	return cmp.Or(env, configFile)
}

func configCheck() *cobra.Command {
	return &cobra.Command{
		Use: "check [FILE]", Short: "check a configuration file and the files that it names", Args: args(cobra.MaximumNArgs(1)),
		Long: `Checks a configuration file as 'parley serve' does: its keys, their values, how they
fit together, and the files with rules, notifications, policies and certificates.
Environment variables do not count. Each fault is printed with its line. A certificate
that is not valid now is a fault here; a start goes on with it, and warns.`,
		Example: "  parley config check /etc/parley/parley.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			path := namedConfig(args)
			s, flags := newServe()
			keys := readConfig(path, flags)
			if _, perKey := keys.(interface{ Unwrap() []error }); keys != nil && !perKey {
				return keys
			}
			err := s.complete(flags, cmd.ErrOrStderr())
			if wrong, ok := errors.AsType[misused](err); ok { // the file is, and not the command line
				err = wrong.error
			}
			err = errors.Join(err, withLines(flags, s.TLS.Read()))
			if keys != nil {
				err = errors.Join(keys, ofKeys(flags, err))
			}
			if err != nil {
				return err
			}
			return show(cmd, map[string]any{"file": path, "valid": true}, func(render.Style) string { return path + " is valid.\n" })
		},
	}
}

func configPrint() *cobra.Command {
	return &cobra.Command{
		Use: "print [FILE]", Short: "print the configuration with defaults, as YAML", Args: args(cobra.MaximumNArgs(1)),
		Long: `Prints what 'parley serve --config FILE' would run with: the file, overridden by the
environment, and the defaults of all other keys. Without FILE, PARLEY_CONFIG and
` + configFile + `, it prints the defaults. Of secrets it prints the paths, and of URLs no
passwords.`,
		Example: "  parley config print > parley.yaml\n  parley config print /etc/parley/parley.yaml --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			_, flags := newServe()
			if err := fromEnvironment(flags); err != nil {
				return err
			}
			named := len(args) > 0 || flags.Changed(configFlag)
			err := readConfig(namedConfig(args), flags)
			none := errors.Is(err, fs.ErrNotExist) || errors.Is(err, strictyaml.ErrEmpty) // by a shell that is to print to it
			if err != nil && (named || !none) {
				return err
			}
			text, err := effective(flags)
			if err != nil {
				return err
			}
			values := map[string]any{}
			for _, f := range keysOf(flags) {
				values[f.Name] = valueOf(f)
			}
			return show(cmd, values, func(render.Style) string { return text })
		},
	}
}

func configSchema() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "schema", Short: "print the JSON Schema of the configuration file", Args: args(cobra.NoArgs),
		Long: `Prints the JSON Schema (2020-12) of the configuration file, made from the flags of
'parley serve'. Editors check and complete with it.`,
		Example: "  parley config schema --out parley.schema.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, flags := newServe()
			text, err := schemaOf(flags)
			if err != nil {
				return err
			}
			if out != "" {
				return os.WriteFile(out, text, 0o644) //nolint:gosec // it is public
			}
			return say(cmd, string(text))
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "`FILE` to write it to (default: standard output)")
	return cmd
}

// newServe makes the flags of 'parley serve', as yet unset.
func newServe() (*serve, *pflag.FlagSet) {
	s, flags := &serve{}, pflag.NewFlagSet("serve", pflag.ContinueOnError)
	s.flags(flags)
	return s, flags
}

// ofTheStore are the keys that mean something else when they are given: without them an existing store
// keeps its own setting, and a new one gets this.
var ofTheStore = map[string]string{"archive-after": defaultArchiveAfter.String(), "keep-inbox": store.DefaultInboxAge.String(), "replicas": "1"}

// effective prints the value of every key, under the headings of the help. Read again, it is the same
// configuration.
func effective(flags *pflag.FlagSet) (string, error) {
	var out strings.Builder
	heading := ""
	for _, f := range keysOf(flags) {
		if of := f.Annotations[headingOf][0]; of != heading {
			heading = of
			fmt.Fprintf(&out, "%s# %s\n", map[bool]string{true: "\n"}[out.Len() > 0], heading)
		}
		if initially := ofTheStore[f.Name]; initially != "" && !f.Changed {
			fmt.Fprintf(&out, "# %s: %s # for a new store; an existing one keeps its own\n", f.Name, initially)
			continue
		}
		var line bytes.Buffer
		encoder := yaml.NewEncoder(&line)
		encoder.SetIndent(2)
		if err := encoder.Encode(map[string]any{f.Name: valueOf(f)}); err != nil {
			return "", err
		}
		out.Write(line.Bytes())
	}
	return out.String(), nil
}

// valueOf is a flag's value as YAML and JSON have it.
func valueOf(f *pflag.Flag) any {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		all := []string{}
		for _, one := range list.GetSlice() {
			all = append(all, natslogin.WithoutPasswords(one))
		}
		return all
	}
	return typed(f, redacted(f))
}

// redacted is a flag's value without passwords.
func redacted(f *pflag.Flag) string {
	if f.Name == "nats" {
		return natslogin.WithoutPassword(f.Value.String())
	}
	return natslogin.WithoutPasswords(f.Value.String())
}

// typed is the text of a number or a boolean as such.
func typed(f *pflag.Flag, text string) any {
	switch f.Value.Type() {
	case "bool", "int", "float64":
		var value any
		if yaml.Unmarshal([]byte(text), &value) == nil {
			return value
		}
	}
	return text
}

// schemaOf makes the JSON Schema of a configuration file.
func schemaOf(flags *pflag.FlagSet) ([]byte, error) {
	properties := map[string]any{}
	for _, f := range keysOf(flags) {
		_, usage := pflag.UnquoteUsage(f)
		p := map[string]any{"description": usage}
		switch f.Value.Type() {
		case "bool":
			p["type"] = "boolean"
		case "int":
			p["type"] = "integer"
		case "float64":
			p["type"] = "number"
		case "list", "stringSlice":
			p["type"], p["items"] = "array", map[string]any{"type": "string"}
		case "duration":
			pattern := `^[-+]?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`
			other := map[string]any{"const": 0}
			if _, ok := f.Value.(*fsync); ok {
				other["const"] = "always"
			}
			p["anyOf"] = []any{map[string]any{"type": "string", "pattern": pattern}, other}
		default:
			p["type"] = "string"
			if values, ok := choices["serve --"+f.Name]; ok {
				p["enum"] = values
			}
		}
		if text := f.DefValue; text != "" && text != "[]" {
			p["default"] = typed(f, text)
		}
		properties[f.Name] = p
	}
	text, err := json.MarshalIndent(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://parley-asp.github.io/schemas/parley.schema.json",
		"title": "parley.yaml", "description": "The configuration file of 'parley serve --config'. Each key is a flag of serve.",
		"type": "object", "properties": properties, "additionalProperties": false,
	}, "", "  ")
	return append(text, '\n'), err
}
