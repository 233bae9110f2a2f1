package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/parley-asp/parley/internal/strictyaml"
	"github.com/parley-asp/parley/server"
)

const (
	configFlag = "config"
	configFile = "parley.yaml" // that 'parley config' reads if nothing names another
	maxConfig  = 1 << 20       // bytes
)

// readConfig sets the flags that a configuration file names, except those that are set already. Every
// fault names the file, the line and the key.
func readConfig(path string, flags *pflag.FlagSet) error {
	data, err := readBounded(path, maxConfig)
	if err != nil {
		return err
	}
	document, err := strictyaml.Document(data)
	if errors.Is(err, strictyaml.ErrEmpty) { // or emptied by who is writing it
		return fmt.Errorf("%s: %w: want at least one key, or no --config", path, err)
	} else if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	top := document.Content[0]
	if top.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d: want keys with values, such as \"listen: 0.0.0.0:4222\"", path, top.Line)
	}
	var faults []error
	seen := map[string]int{}
	for n := 0; n < len(top.Content); n += 2 {
		key, value := top.Content[n], top.Content[n+1]
		at := fmt.Sprintf("%s:%d", path, key.Line)
		fault := configure(flags, key.Value, value, at)
		if line, twice := seen[key.Value]; twice {
			fault = fmt.Errorf("line %d has it, too", line)
		}
		if fault != nil {
			faults = append(faults, fmt.Errorf("%s: %s: %w", at, key.Value, fault))
		}
		seen[key.Value] = key.Line
	}
	return errors.Join(faults...)
}

// readBounded reads a file of at most so many bytes.
func readBounded(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // opened read-only
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case int64(len(data)) > most:
		return nil, fmt.Errorf("%s: has more than %d bytes", path, most)
	}
	return data, nil
}

// atLine is the annotation of a flag that a configuration file set: the file and the line.
const atLine = "line"

// withLines adds to each fault the line of the configuration file that it belongs to, if there is one.
func withLines(flags *pflag.FlagSet, err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, one := range joined.Unwrap() {
			all = append(all, withLines(flags, one))
		}
		return errors.Join(all...)
	}
	if wrong, ok := errors.AsType[*server.Fault](err); ok {
		for _, name := range wrong.Flags {
			if f := flags.Lookup(name); f != nil && f.Annotations[atLine] != nil {
				return fmt.Errorf("%s: %w", f.Annotations[atLine][0], err)
			}
		}
	}
	return err
}

// ofKeys are the faults of keys that the file has, each with a value of its type: others may come of a key
// that was not set.
func ofKeys(flags *pflag.FlagSet, err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, one := range joined.Unwrap() {
			all = append(all, ofKeys(flags, one))
		}
		return errors.Join(all...)
	}
	wrong, ok := errors.AsType[*server.Fault](err)
	if !ok || slices.ContainsFunc(wrong.Flags, func(name string) bool {
		f := flags.Lookup(name)
		return f == nil || f.Annotations[atLine] != nil && !f.Changed
	}) {
		return nil
	}
	return err
}

// configure sets the flag of a key, unless it is set already. at is where the file has it.
func configure(flags *pflag.FlagSet, key string, value *yaml.Node, at string) error {
	f := flags.Lookup(key)
	if f == nil || !configurable(f) {
		return unknownKey(flags, key)
	}
	if f.Changed {
		return nil
	}
	if err := flags.SetAnnotation(key, atLine, []string{at}); err != nil {
		return err
	}
	for value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return configureList(f, list, value)
	}
	if !slices.Contains(tagsOf(f), value.ShortTag()) || value.Kind != yaml.ScalarNode {
		return fmt.Errorf("want %s", wantOf(f))
	}
	if choice, ok := choices["serve --"+key]; ok && !slices.Contains(choice, value.Value) {
		return fmt.Errorf("want %s", anyOf(choice))
	}
	text := value.Value
	if f.Value.Type() == "bool" { // YAML also has True
		text = strings.ToLower(text)
	}
	if err := flags.Set(key, text); err != nil {
		if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			err = invalid.Unwrap()
		}
		if _, number := errors.AsType[*strconv.NumError](err); number || strings.HasPrefix(err.Error(), "time: ") {
			return fmt.Errorf("want %s", wantOf(f))
		}
		return err
	}
	return nil
}

func configureList(f *pflag.Flag, list pflag.SliceValue, value *yaml.Node) error {
	if value.Kind != yaml.SequenceNode {
		return fmt.Errorf("want %s", wantOf(f))
	}
	var all []string
	for _, one := range value.Content {
		if one.Kind == yaml.AliasNode {
			one = one.Alias
		}
		if one.Kind != yaml.ScalarNode || one.ShortTag() != "!!str" {
			return fmt.Errorf("line %d: want text", one.Line)
		}
		all = append(all, one.Value)
	}
	err := list.Replace(all)
	f.Changed = err == nil
	return err
}

// configurable reports whether a configuration file may have a flag of 'parley serve'.
func configurable(f *pflag.Flag) bool {
	return f.Name != configFlag && f.Name != "help" && f.Name != "json"
}

// keysOf are the keys of a configuration file, in the order of the help.
func keysOf(flags *pflag.FlagSet) (keys []*pflag.Flag) {
	flags.VisitAll(func(f *pflag.Flag) {
		if configurable(f) {
			keys = append(keys, f)
		}
	})
	return keys
}

// tagsOf are the YAML tags of a key's value that is not a list.
func tagsOf(f *pflag.Flag) []string {
	switch f.Value.Type() {
	case "bool":
		return []string{"!!bool"}
	case "int":
		return []string{"!!int"}
	case "float64":
		return []string{"!!int", "!!float"}
	case "duration":
		return []string{"!!str", "!!int"} // 0
	default:
		return []string{"!!str"}
	}
}

// wantOf says in words what a key's value is.
func wantOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "true or false"
	case "int":
		return "a whole number"
	case "float64":
		return "a number"
	case "duration":
		return "a duration such as 30s or 2h"
	case "list", "stringSlice":
		return "a list of texts, such as [a, b]"
	default:
		return "text, in quotes if YAML reads something else"
	}
}

// unknownKey names the key that was meant, if one is near.
func unknownKey(flags *pflag.FlagSet, key string) error {
	meant, least := "", len(key)/3+1
	for _, f := range keysOf(flags) {
		if d := distance(strings.ToLower(key), f.Name); d < least {
			meant, least = f.Name, d
		}
	}
	if meant == "" {
		return errors.New("there is no such key; 'parley config print' lists all")
	}
	return fmt.Errorf("there is no such key; did you mean %s?", meant)
}

// distance is how many characters are inserted, deleted or replaced to make one text of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}
