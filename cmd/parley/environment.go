package main

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const variables = "PARLEY_" // how the names of our environment variables begin

func lookup(name string) (string, bool) { return os.LookupEnv(name) }

// variable is the environment variable that sets a flag.
func variable(f *pflag.Flag) string {
	return variables + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}

// fromEnvironment sets the flags that the command line does not set.
func fromEnvironment(flags *pflag.FlagSet) error {
	var faults []error
	flags.VisitAll(func(f *pflag.Flag) {
		name := variable(f)
		value, set := lookup(name)
		if f.Changed || !set || f.Name == "help" || f.Name == "version" {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			faults = append(faults, flagFault(name, err))
		}
	})
	if len(faults) > 0 {
		return usage(errors.Join(faults...))
	}
	return nil
}

// setNoFlag are our variables that set no flag: keys, and what the SDKs and compose.yaml read.
var setNoFlag = []string{
	"PARLEY_EMBEDDINGS_KEY", "PARLEY_MODEL_KEY", "PARLEY_AGENT", "PARLEY_BINARY", "PARLEY_LOGIN", "PARLEY_SEED", "PARLEY_USER",
}

// ofService matches the variables that Kubernetes makes for a service called parley.
var ofService = regexp.MustCompile(`_SERVICE_HOST$|_SERVICE_PORT(_|$)|_PORT(_[0-9]+_|$)`)

// unknownVariables are the names in an environment that look like ours and mean nothing to any command.
func unknownVariables(root *cobra.Command, environment []string) (unknown []string) {
	known := slices.Clone(setNoFlag)
	know := func(f *pflag.Flag) { known = append(known, variable(f)) }
	everyCommand(root, func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(know)
		cmd.PersistentFlags().VisitAll(know)
	})
	for _, one := range environment {
		name, _, _ := strings.Cut(one, "=")
		if strings.HasPrefix(name, variables) && !slices.Contains(known, name) && !ofService.MatchString(name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// everyCommand calls do for every command that the help shows.
func everyCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			everyCommand(c, do)
		}
	}
}
