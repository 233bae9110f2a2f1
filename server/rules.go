package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	_ "time/tzdata" // calendars name time zones, which the machine may lack

	"go.yaml.in/yaml/v3"

	"github.com/parley-asp/parley/escalation"
)

// ReadRules reads the escalation rules from a YAML or JSON file and checks them.
// An unknown field is an error, so that a misspelt rule is not ignored. Errors
// name the line where the file has one.
func ReadRules(path string) (*escalation.Rules, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	rules := new(escalation.Rules)
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(rules); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := rules.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rules, nil
}
