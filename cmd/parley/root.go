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

// commands are the subcommands by group, in the order of the help. Each has a file.
var commands = []struct {
	id, title string
	commands  []func() *cobra.Command
}{
	{"broker", "Run a broker", []func() *cobra.Command{serveCommand, configCommand, doctorCommand, natsConfigCommand, topCommand, keysCommand, backupCommand, restoreCommand, streamsCommand}},
	{"use", "Use a broker", []func() *cobra.Command{sessionCommand, sayCommand, agreementCommand, commitmentsCommand, disputeCommand, evidenceCommand, logCommand, inboxCommand, checkCommand, turnCommand, negotiatorCommand, findCommand, tenderCommand, mcpCommand, insightsCommand, agentCommand, humanCommand, tokenCommand, schemasCommand}},
	{"try", "Try and measure", []func() *cobra.Command{demoCommand, devCommand, benchCommand}},
}

const about = `parley brokers negotiations between agents, and the humans behind them, with
npayload's Agent Session Protocol (ASP, asp/0.1) over NATS JetStream.

An environment variable can set any flag: PARLEY_SYNC=1s sets --sync 1s, and
PARLEY_LOG_LEVEL sets --log-level. The command line takes precedence.

A session, an escalation or a check can be named by a unique prefix of its id.

Exit status: 0 done, 1 refused or failed, 2 wrong usage. With --json, errors
are JSON on standard error.`

// Commands are listed in our order. Cobra has this setting for all commands only.
func init() { cobra.EnableCommandSorting = false }

func rootCommand() *cobra.Command {
	root := group(&cobra.Command{
		Use: "parley", Short: "session broker for agents that negotiate", Long: about,
		Example: `  parley serve --dev            start a broker without logins, to try things out
  parley session ls             list the sessions
  parley session show ID        show a session as a conversation`,
		Version:           api.Version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd.Flags()) },
	})
	root.PersistentFlags().Bool("json", false, "print data and errors as JSON")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			err = flagFault("--"+invalid.GetFlag().Name, err)
		}
		return usage(err)
	})
	root.SetUsageFunc(printUsage)
	for _, g := range commands {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, command := range g.commands {
			cmd := command()
			cmd.GroupID = g.id
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(versionCommand(), manCommand())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Use, cmd.Short, cmd.Long, cmd.Example = "help [COMMAND…]", "describe a command", "", "  parley help session show"
			cmd.Run, cmd.RunE = nil, helpOf
		case "completion":
			group(cmd).Short = "print a script that completes commands in a shell"
			cmd.SuggestionsMinimumDistance = 1 // many names of shells differ by two letters
		}
	}
	reflowAll(root)
	offerChoices(root)
	return root
}

// group makes a command that only has subcommands. Without one it prints its help.
func group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		message := fmt.Sprintf("unknown command %q", args[0])
		if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
			message += "; did you mean " + strings.Join(like, " or ") + "?"
		} else if cmd.HasParent() {
			message += ": want " + anyOf(names(cmd.Commands()))
		}
		return usage(errors.New(message))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(commands...)
	return cmd
}

func names(commands []*cobra.Command) (all []string) {
	for _, c := range commands {
		if c.IsAvailableCommand() {
			all = append(all, c.Name())
		}
	}
	return all
}

// helpOf describes the command that args name. Cobra's own describes the program if
// there is no such command.
func helpOf(help *cobra.Command, args []string) error {
	cmd, rest, err := help.Root().Find(args)
	if err == nil && len(rest) > 0 {
		err = cmd.ValidateArgs(rest)
	}
	if err != nil {
		return usage(err)
	}
	cmd.InitDefaultHelpFlag()
	return cmd.Help()
}

// run runs the program and returns its exit status.
func run(ctx context.Context, args []string) int {
	root := rootCommand()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	return report(cmd, args, err)
}
