package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestChoices: the shell completes a flag with the values that its help names.
func TestChoices(t *testing.T) {
	t.Parallel()
	for key, values := range choices {
		path, name, _ := strings.Cut(key, " --")
		cmd, rest, err := rootCommand().Find(strings.Fields(path))
		if err != nil || len(rest) > 0 || cmd.Flags().Lookup(name) == nil {
			t.Errorf("%s: there is no such flag: %v", key, err)
			continue
		}
		help := cmd.Flags().Lookup(name).Usage + cmd.Flags().Lookup(name).DefValue + cmd.Long
		for _, value := range values {
			if !strings.Contains(help, value) {
				t.Errorf("%s: the help does not name %s: %s", key, value, help)
			}
		}
		var out bytes.Buffer
		root := rootCommand()
		root.SetOut(&out)
		root.SetErr(new(bytes.Buffer))
		root.SetArgs(slices.Concat([]string{"__complete"}, strings.Fields(path), []string{"--" + name, ""}))
		if err := root.Execute(); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if got := strings.Split(out.String(), "\n"); !slices.Equal(got[:min(len(got), len(values))], values) {
			t.Errorf("%s completes %q, want %q", key, got, values)
		}
	}
}
