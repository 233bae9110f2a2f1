package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/cmd/parley/demo"
	"github.com/parley-asp/parley/internal/natslogin"
	"github.com/parley-asp/parley/server"
)

func demoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "demo", Short: "play negotiations between real agents, and verify them", Args: args(cobra.NoArgs),
		Long: `Plays negotiations between agents that each have their own key, connection and
inbox: npayload's six patterns (asp), a match assessed in turns (bilateral), peers
who counter until all agree (convergent), an agreement that both sign (binding), or
all of these; or two negotiators whose offers converge (haggle); or a buyer who
compares the offers of three sellers and accepts one (tender); or what follows an
agreement: deliveries, a breach and a dispute (delivery). It prints each conversation
as it happens, and verifies every transcript and agreement offline at
the end.

With --face http the agents hold no keys: they are hosted, send what they want to
say over HTTP, and read their inbox as server-sent events. The human signs. It plays
every mode but haggle and tender.

With --face mcp or a2a two hosted agents play the sixth pattern, and nothing else:
over MCP they call the broker's tools, over A2A they send each other messages.
With --face macp two agents negotiate in MACP's proposal mode (--mode convergent).

It starts a broker with logins and signatures, and removes it at the end. With
--url it plays on a running broker, where it registers its agents (of the domains
*.example) with fresh keys. Unless that broker runs with --dev, it needs the
operator's key: --operator, or operator.nk in --data.`,
		Example: `  parley demo
  parley demo --mode binding
  parley demo --mode haggle
  parley demo --mode tender
  parley demo --mode delivery
  parley demo --mode haggle --open
  parley demo --mode all --keep ./demo
  parley demo --face http
  parley demo --face mcp
  parley demo --face a2a
  parley demo --face macp
  parley demo --url nats://127.0.0.1:4222 --data ./parley-data`,
		RunE: runDemo,
	}
	flags := cmd.Flags()
	flags.String("mode", "", "`MODE` to play: "+strings.Join(demo.Choices(demo.NATS), ", ")+" (default "+demo.ASP+", with --face macp "+demo.Convergent+")")
	flags.String("face", demo.NATS, "the interface (`FACE`) of the broker that the agents use: "+strings.Join(demo.Faces(), ", "))
	flags.String("http", "http://127.0.0.1:8080", "with --url and any --face but nats: `URL` of the broker's HTTP")
	flags.String("macp", "127.0.0.1:50051", "with --url and --face macp: `HOST:PORT` of the broker's MACP")
	flags.String("url", "", "play on the broker at this NATS `URL` (default: start one)")
	flags.String("data", defaultData, "with --url: the broker's data `DIR`, which holds operator.nk")
	flags.String("operator", "", "with --url: `FILE` with the seed of the broker's operator")
	flags.String("keep", "", "keep the transcripts and the started broker's data in `DIR`")
	flags.Bool("open", false, "at the end, open a deal of the demo in a browser ($BROWSER, else the system's), and serve until Ctrl-C")
	flags.Bool("quiet", false, "print only the summary")
	return cmd
}

func runDemo(cmd *cobra.Command, _ []string) error {
	o := demo.Options{
		URL: text(cmd, "url"), Face: text(cmd, "face"), HTTP: text(cmd, "http"), MACP: text(cmd, "macp"), Mode: text(cmd, "mode"), Keep: text(cmd, "keep"),
		Style: style(cmd), Quiet: asked(cmd, "quiet"),
	}
	if choices := demo.Choices(o.Face); o.Mode != "" && !slices.Contains(choices, o.Mode) {
		return usage(fmt.Errorf("--mode %s: --face %s plays %s", o.Mode, o.Face, strings.Join(choices, ", ")))
	}
	reach, err := operatorOf(cmd, &o)
	if err != nil {
		return err
	}
	if !asked(cmd, "json") {
		o.Out = cmd.OutOrStdout()
	}
	told := func(report demo.Report) error {
		if asked(cmd, "json") {
			return show(cmd, report, nil)
		}
		return say(cmd, moreAbout(report, o, reach))
	}
	if asked(cmd, "open") {
		if o.URL != "" {
			return usage(demo.ErrRunning)
		}
		o.Open = func(ctx context.Context, report demo.Report, url string) error {
			return errors.Join(told(report), openPage(ctx, cmd.ErrOrStderr(), url))
		}
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	report, err := demo.Run(ctx, o)
	if err == nil && o.Open == nil {
		err = told(report)
	}
	if err == nil && !report.OK {
		err = errors.New("the demo failed")
	}
	return err
}

// operatorOf finds the operator's key of a running broker; there is none under --dev.
// It returns the flags by which other commands connect.
func operatorOf(cmd *cobra.Command, o *demo.Options) (reach string, err error) {
	if o.URL == "" {
		return "", nil
	}
	url := natslogin.WithoutPassword(o.URL)
	seed, reach := text(cmd, "operator"), "--url "+url+" --key "+text(cmd, "operator")
	if seed == "" {
		seed, reach = filepath.Join(text(cmd, "data"), server.OperatorSeed), "--url "+url+" --data "+text(cmd, "data")
		if _, err := os.Stat(seed); os.IsNotExist(err) {
			return "--url " + url, nil
		}
	}
	o.Operator, err = server.ReadSeed(seed)
	return reach, err
}

// moreAbout says how to look at the sessions that were played.
func moreAbout(r demo.Report, o demo.Options, reach string) string {
	newest := r.Scenes[len(r.Scenes)-1].Session
	switch {
	case o.URL != "":
		return fmt.Sprintf("\nMore: parley session show %s %s\n", reach, newest)
	case o.Keep != "":
		return fmt.Sprintf("\nMore: parley session verify --broker-key %s %s\nor run parley serve --data %s, and then parley session show --data %s %s\n",
			r.Broker, filepath.Join(o.Keep, demo.Transcripts, "*.jsonl"), o.Keep, o.Keep, newest)
	default:
		return "\nMore: --keep DIR keeps the broker's data and the transcripts, for parley session show and verify.\n"
	}
}
