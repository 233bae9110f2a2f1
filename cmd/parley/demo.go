package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/internal/demo"
	"github.com/parley-asp/parley/server"
)

func demoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "demo", Short: "play negotiations between real agents, and verify them", Args: args(cobra.NoArgs),
		Long: `Plays negotiations between agents that each have a key, a connection and an inbox
of their own: npayload's six patterns (asp), a match weighed in turns (bilateral),
peers who counter until all agree (convergent), or all of them. It prints each
conversation as it happens, and at the end verifies every transcript offline.

It starts a broker of its own, with logins and signatures on, and removes it at
the end. With --url it plays on that broker, where it registers its agents (of
the domains *.example) with fresh keys; unless that one runs with --dev, it
needs the operator's key: --operator, or --data with operator.nk in it.`,
		Example: `  parley demo
  parley demo --mode all --keep ./demo
  parley demo --url nats://127.0.0.1:4222 --data ./parley-data`,
		RunE: runDemo,
	}
	flags := cmd.Flags()
	flags.String("mode", demo.ASP, "what to play: "+strings.Join(demo.Choices(), ", "))
	flags.String("url", "", "play on the broker at this NATS address (default: one of its own)")
	flags.String("data", defaultData, "with --url: that broker's data directory, for its operator.nk")
	flags.String("operator", "", "with --url: file with the seed of that broker's operator")
	flags.String("keep", "", "keep the transcripts, and the data of the broker that was started, in this directory")
	flags.Bool("quiet", false, "print the summary only")
	return cmd
}

func runDemo(cmd *cobra.Command, _ []string) error {
	o := demo.Options{
		URL: text(cmd, "url"), Mode: text(cmd, "mode"), Keep: text(cmd, "keep"),
		Style: style(cmd), Quiet: asked(cmd, "quiet"),
	}
	if !slices.Contains(demo.Choices(), o.Mode) {
		return usage(fmt.Errorf("--mode %s: want %s", o.Mode, strings.Join(demo.Choices(), ", ")))
	}
	reach, err := operatorOf(cmd, &o)
	if err != nil {
		return err
	}
	if !asked(cmd, "json") {
		o.Out = cmd.OutOrStdout()
	}
	report, err := demo.Run(cmd.Context(), o)
	if err != nil {
		return err
	}
	if asked(cmd, "json") {
		err = show(cmd, report, nil)
	} else {
		err = say(cmd, moreAbout(report, o, reach))
	}
	if err == nil && !report.OK {
		err = errors.New("not everything went as it should")
	}
	return err
}

// operatorOf finds the operator's key of the broker that is named; none is for
// one under --dev. It returns the flags by which other commands reach it.
func operatorOf(cmd *cobra.Command, o *demo.Options) (reach string, err error) {
	if o.URL == "" {
		return "", nil
	}
	seed, reach := text(cmd, "operator"), "--url "+o.URL+" --key "+text(cmd, "operator")
	if seed == "" {
		seed, reach = filepath.Join(text(cmd, "data"), server.OperatorSeed), "--url "+o.URL+" --data "+text(cmd, "data")
		if _, err := os.Stat(seed); os.IsNotExist(err) {
			return "--url " + o.URL, nil
		}
	}
	o.Operator, err = server.ReadSeed(seed)
	return reach, err
}

// moreAbout says how to see more of what was played.
func moreAbout(r demo.Report, o demo.Options, reach string) string {
	newest := r.Scenes[len(r.Scenes)-1].Session
	switch {
	case o.URL != "":
		return fmt.Sprintf("\nMore: parley session show %s %s\n", reach, newest)
	case o.Keep != "":
		return fmt.Sprintf("\nMore: parley session verify --broker-key %s %s\nor run parley serve --data %s, and beside it: parley session show --data %s %s\n",
			r.Broker, filepath.Join(o.Keep, demo.Transcripts, "*.jsonl"), o.Keep, o.Keep, newest)
	default:
		return "\nMore: with --keep DIR the broker's data and the transcripts stay, for parley session show and verify.\n"
	}
}
