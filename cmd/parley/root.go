package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-asp/parley/api"
)

// commands are the subcommands, in the order of the help; each has a file.
var commands = []func() *cobra.Command{
	serveCommand,
	natsConfigCommand,
	demoCommand,
	benchCommand,
	sessionCommand,
	inboxCommand,
	agentCommand,
	humanCommand,
	backupCommand,
	restoreCommand,
	schemasCommand,
	versionCommand,
}

const about = `parley brokers negotiations between agents, and the humans behind them, by
npayload's Agent Session Protocol (ASP, asp/0.1) over NATS JetStream.

Every flag may come from the environment instead: --sync 1s is PARLEY_SYNC=1s,
--log-level is PARLEY_LOG_LEVEL. The command line wins.

Exit status: 0 is done, 1 is refused or failed, 2 is a wrong command line.`

// Commands are listed in their own order. It is the library's setting for all there are.
func init() { cobra.EnableCommandSorting = false }

func rootCommand() *cobra.Command {
	root := group(&cobra.Command{
		Use: "parley", Short: "session broker for agents that negotiate", Long: about,
		Example: `  parley serve --dev            a broker for trying things out, without logins
  parley session ls             what is being negotiated
  parley session show ID        one negotiation, as a conversation`,
		Version:           api.Version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd.Flags()) },
	})
	root.PersistentFlags().Bool("json", false, "print data as JSON")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	for _, command := range commands {
		root.AddCommand(command())
	}
	return root
}

// group makes a command that only has subcommands: alone it prints its help.
func group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		message := fmt.Sprintf("there is no command %q", args[0])
		if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
			message += "; did you mean " + strings.Join(like, " or ") + "?"
		}
		return usage(errors.New(message))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(commands...)
	return cmd
}

// fromEnvironment sets the flags that the command line left out.
func fromEnvironment(flags *pflag.FlagSet) error {
	var faults []error
	flags.VisitAll(func(f *pflag.Flag) {
		name := "PARLEY_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, set := lookup(name)
		if f.Changed || !set || f.Name == "help" || f.Name == "version" {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", name, err))
		}
	})
	if len(faults) > 0 {
		return usage(errors.Join(faults...))
	}
	return nil
}

// run is the program: it returns the exit status.
func run(ctx context.Context, args []string) int {
	root := rootCommand()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	return report(cmd, err)
}
