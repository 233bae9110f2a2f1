package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	_ "time/tzdata" // calendars name time zones, also on machines that have none

	"go.yaml.in/yaml/v3"

	"github.com/parley-asp/parley/escalation"
)

// ReadRules reads who decides escalations from a file, YAML or JSON, and checks
// it. A field that there is none of is an error that names its line: a rule that
// was spelled wrong must not be a rule that is not there.
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
