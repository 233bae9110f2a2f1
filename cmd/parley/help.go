package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the widest line of the help.
const helpWidth = 80

// headingOf is the annotation that holds a flag's heading in the help.
const headingOf = "heading"

const (
	ownFlags    = "Flags"
	globalFlags = "Global flags"
)

// groupFlags adds flags that the help lists under a heading, in this order.
func groupFlags(flags *pflag.FlagSet, heading string, define func(*pflag.FlagSet)) {
	group := pflag.NewFlagSet(heading, pflag.ContinueOnError)
	group.SortFlags, flags.SortFlags = false, false
	define(group)
	group.VisitAll(func(f *pflag.Flag) {
		f.Annotations = map[string][]string{headingOf: {heading}}
		flags.AddFlag(f)
	})
}

// flagHelp lists a command's flags under their headings: its own, then the groups,
// then the global ones.
func flagHelp(cmd *cobra.Command) string {
	sets := map[string]*pflag.FlagSet{}
	var groups []string
	add := func(heading string) func(*pflag.Flag) {
		return func(f *pflag.Flag) {
			in := heading
			switch of := f.Annotations[headingOf]; {
			case len(of) > 0:
				in = of[0]
			case f.Name == "help":
				in = globalFlags
			}
			if sets[in] == nil {
				sets[in] = pflag.NewFlagSet(in, pflag.ContinueOnError)
				sets[in].SortFlags = in == ownFlags || in == globalFlags
				groups = append(groups, in)
			}
			sets[in].AddFlag(f)
		}
	}
	cmd.LocalFlags().VisitAll(add(ownFlags))
	cmd.InheritedFlags().VisitAll(add(globalFlags))
	var out strings.Builder
	list := func(heading string) {
		if sets[heading] != nil && sets[heading].HasAvailableFlags() {
			out.WriteString("\n" + heading + ":\n" + sets[heading].FlagUsagesWrapped(helpWidth))
		}
	}
	list(ownFlags)
	for _, heading := range groups {
		if heading != ownFlags && heading != globalFlags {
			list(heading)
		}
	}
	list(globalFlags)
	return out.String()
}

// reflow breaks the paragraphs of a text at helpWidth.
func reflow(text string) string {
	var paragraphs []string
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		var b strings.Builder
		column := 0
		for _, word := range strings.Fields(paragraph) {
			width := utf8.RuneCountInString(word)
			switch {
			case column > 0 && column+1+width > helpWidth:
				b.WriteByte('\n')
				column = 0
			case column > 0:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += width
		}
		paragraphs = append(paragraphs, b.String())
	}
	return strings.Join(paragraphs, "\n\n")
}

// reflowAll breaks the descriptions of a command and its subcommands.
func reflowAll(cmd *cobra.Command) {
	cmd.Long = reflow(cmd.Long)
	for _, c := range cmd.Commands() {
		reflowAll(c)
	}
}

// usageLine is how to call a command. One that only has subcommands takes a command.
func usageLine(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() && cmd.Use == cmd.Name() {
		return cmd.CommandPath() + " COMMAND [flags]"
	}
	return cmd.UseLine()
}

// printUsage prints how to use a command, with its flags under headings. It is no template of cobra's: those call
// methods by their names, so the linker would keep each exported method in the program.
func printUsage(cmd *cobra.Command) error {
	var out strings.Builder
	fmt.Fprintf(&out, "Usage:\n  %s\n", usageLine(cmd))
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&out, "\nAliases: %s\n", cmd.NameAndAliases())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&out, "\nExamples:\n%s\n", cmd.Example)
	}
	list := func(title, group string) {
		out.WriteString("\n" + title + ":\n")
		for _, c := range cmd.Commands() {
			if c.GroupID == group && (c.IsAvailableCommand() || c.Name() == "help") {
				fmt.Fprintf(&out, "  %-*s %s\n", c.NamePadding(), c.Name(), c.Short)
			}
		}
	}
	if cmd.HasAvailableSubCommands() {
		for _, g := range cmd.Groups() {
			list(g.Title, g.ID)
		}
		if others := "Commands"; !cmd.AllChildCommandsHaveGroup() {
			if len(cmd.Groups()) > 0 {
				others = "Other"
			}
			list(others, "")
		}
	}
	out.WriteString(flagHelp(cmd))
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&out, "\n%s COMMAND --help describes a command.\n", cmd.CommandPath())
	}
	_, err := io.WriteString(cmd.OutOrStderr(), out.String())
	return err
}
