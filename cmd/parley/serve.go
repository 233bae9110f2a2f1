package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/natscontext"
	"github.com/parley-asp/parley/notify"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/store"
)

type serve struct {
	server.Options
	sync                   fsync
	creds, context, nkey   string
	rules, telling         string
	logLevel               string
	logJSON                bool
	low, medium, high, top time.Duration
	invitation             time.Duration
}

func serveCommand() *cobra.Command {
	s := &serve{}
	cmd := &cobra.Command{
		Use: "serve", Short: "run the broker", Args: args(cobra.NoArgs),
		Long: `Runs the broker with a NATS server of its own (embedded, JetStream in --data), or
on one elsewhere (--nats, at least ` + store.MinServer + `). It runs until SIGTERM or SIGINT, finishes what
it accepted, and stops; a second signal stops it at once.

--data holds the keys of the broker, mode 0600: broker.nk signs receipts, and
operator.nk logs in as operator. Keep both safe, and broker.nk for ever.

A server elsewhere needs the configuration that ` + "`parley nats-config`" + ` prints; this
broker then answers its logins. In operator mode (nats-config --format nsc) --creds
takes the ` + server.CredsFile + ` of --data. Where --creds, --nkey or --context are others, who
else may log in is that server's own affair.`,
		Example: `  parley serve --dev                                     try things out: no logins
  parley serve --data /var/lib/parley --listen 0.0.0.0:4222
  parley serve --listen 0.0.0.0:4222 --tls-cert server.pem --tls-key server.key
  parley serve --nats nats://nats.example.com --replicas 3
  parley serve --nats nats://nats.example.com --creds ./parley-data/broker.creds`,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&s.Data, "data", defaultData, "directory of the store and the keys")
	flags.StringVar(&s.Listen, "listen", "127.0.0.1:4222", "host:port of the embedded NATS server; port 0 takes a free one")
	flags.StringVar(&s.HTTP, "http", "127.0.0.1:8080", "host:port of HTTP; empty is none")
	flags.StringVar(&s.Websocket, "websocket", "", "host:port of NATS over WebSocket, for browsers (with --dev not from pages of another origin) and edge agents; empty is none")
	flags.StringVar(&s.TLS.Cert, "tls-cert", "", "PEM file with the certificate chain for NATS, WebSocket and HTTP; empty is no TLS")
	flags.StringVar(&s.TLS.Key, "tls-key", "", "PEM file with the key of --tls-cert")
	flags.StringVar(&s.TLS.CA, "tls-ca", "", "PEM file with the CA that clients must show a certificate of (mutual TLS), and the server at --nats too")
	flags.BoolVar(&s.Dev, "dev", false, "no logins: anyone on this machine is anyone; loopback only")
	flags.Var(&s.sync, "sync", "how often the store is fsynced: always (before each acceptance), or a time such as 1s")
	flags.StringVar(&s.NATS, "nats", "", "URL of a NATS server elsewhere, instead of an embedded one")
	flags.StringVar(&s.creds, "creds", "", "NATS credentials file for --nats (default: broker.nk of --data)")
	flags.StringVar(&s.context, "context", "", "context of the nats command line, for --nats")
	flags.StringVar(&s.nkey, "nkey", "", "file with the seed of the nkey for --nats")
	flags.IntVar(&s.Replicas, "replicas", 0, "copies of each stream; more than 1 needs a cluster at --nats (default: as many as there are, 1 at first)")
	flags.DurationVar(&s.low, "escalation-low", 24*time.Hour, "when a human's answer is due, at low urgency")
	flags.DurationVar(&s.medium, "escalation-medium", 4*time.Hour, "the same, at medium urgency")
	flags.DurationVar(&s.high, "escalation-high", time.Hour, "the same, at high urgency")
	flags.DurationVar(&s.top, "escalation-critical", 15*time.Minute, "the same, at critical urgency")
	flags.DurationVar(&s.invitation, "invitation-timeout", 30*time.Second, "when an invitation that names no time must be answered")
	flags.StringVar(&s.telling, "notify", "", "YAML or JSON file that says who is told of escalations, by webhook or mail (default: nobody)")
	flags.StringVar(&s.rules, "escalations", "", "YAML or JSON file that says who decides which escalations, and until when (default: whoever may, one is enough)")
	keepFlags(flags, s)
	limitFlags(flags, &s.Limits)
	flags.StringVar(&s.logLevel, "log-level", "warn", "debug, info, warn or error")
	flags.BoolVar(&s.logJSON, "log-json", false, "log as JSON")
	return cmd
}

// stopWithin bounds a clean shutdown.
const stopWithin = 30 * time.Second

func (s *serve) run(cmd *cobra.Command) error {
	if err := s.complete(cmd); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		note(cmd, "parley: stopping; a second signal stops at once")
		stop()
		<-signals
		os.Exit(failed)
	}()
	n, err := server.Start(ctx, s.Options)
	if err != nil {
		return s.whyNot(err)
	}
	note(cmd, s.started(n))
	<-ctx.Done()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	return n.Close(ending)
}

// complete turns flags into the node's options.
func (s *serve) complete(cmd *cobra.Command) error {
	if err := s.kept(cmd); err != nil {
		return err
	}
	ms := func(d time.Duration) int64 { return d.Milliseconds() }
	for _, d := range []time.Duration{s.low, s.medium, s.high, s.top, s.invitation} {
		if d < time.Millisecond {
			return usage(errors.New("a due time or timeout is at least 1ms"))
		}
	}
	s.Policy = performatives.Policy{
		InvitationTimeout: ms(s.invitation),
		EscalationLow:     ms(s.low), EscalationMedium: ms(s.medium), EscalationHigh: ms(s.high), EscalationCritical: ms(s.top),
	}
	s.Sync = time.Duration(s.sync)
	log, err := newLog(cmd.ErrOrStderr(), s.logLevel, s.logJSON)
	if err != nil {
		return usage(fmt.Errorf("--log-level: %w", err))
	}
	s.Log = log
	if s.rules != "" {
		if s.Rules, err = server.ReadRules(s.rules); err != nil {
			return usage(fmt.Errorf("--escalations: %w", err))
		}
	}
	if s.telling != "" {
		if s.Notify, err = notify.Load(s.telling); err != nil {
			return usage(fmt.Errorf("--notify: %w", err))
		}
	}
	return s.external()
}

// external is how to log in to a NATS server elsewhere.
func (s *serve) external() error {
	if s.Websocket != "" && (s.NATS != "" || s.context != "") {
		return usage(errors.New("--websocket is for the embedded server: a server elsewhere has its own configuration"))
	}
	if s.context != "" {
		c, err := natscontext.Read(s.context)
		if err != nil {
			return fmt.Errorf("--context: %w", err)
		}
		if s.NATS == "" {
			s.NATS = c.URL
		}
		s.NATSCreds = c.Creds
		s.NATSOptions = append([]nats.Option{}, c.Options()...) // not nil: a context without a login means none
		if c.Creds == "" && c.NKey != "" {
			option, err := nats.NkeyOptionFromSeed(c.NKey)
			if err != nil {
				return fmt.Errorf("--context %s: %w", s.context, err)
			}
			s.NATSOptions = append(s.NATSOptions, option)
		}
	}
	if s.NATS == "" {
		if s.creds != "" || s.nkey != "" {
			return usage(errors.New("--creds and --nkey are for a NATS server elsewhere: name it with --nats"))
		}
		return nil
	}
	if s.creds != "" {
		s.NATSCreds = s.creds
	}
	if s.nkey != "" {
		option, err := nats.NkeyOptionFromSeed(s.nkey)
		if err != nil {
			return fmt.Errorf("--nkey: %w", err)
		}
		s.NATSOptions = append(s.NATSOptions, option)
	}
	return nil
}

// whyNot says what to do about a node that did not start.
func (s *serve) whyNot(err error) error {
	switch {
	case errors.Is(err, server.ErrTLS):
		return usage(errors.New("--tls-cert and --tls-key go together, and --tls-ca of an embedded server needs them"))
	case errors.Is(err, context.Canceled):
		return errors.New("stopped before it had started")
	case errors.Is(err, syscall.EADDRINUSE), strings.Contains(err.Error(), "address already in use"):
		return fmt.Errorf("%w\nSomething listens there already, perhaps another broker; --listen (now %s) and --http (now %s) name other addresses", err, s.Listen, s.HTTP)
	case errors.Is(err, server.ErrInUse):
		return fmt.Errorf("%w\nIs another broker running on --data %s? Brokers that share the work use one NATS server: --nats", err, s.Data)
	case errors.Is(err, server.ErrNotLetIn):
		hint := "or say with --creds, --nkey or --context how to log in there"
		if own := filepath.Join(s.Data, server.CredsFile); s.NATSCreds == "" {
			if _, missing := os.Stat(own); missing == nil {
				hint = "a server in operator mode wants --creds " + own
			}
		}
		return fmt.Errorf("--nats %s: %w\n`parley nats-config --data %s` prints the configuration that the server needs; %s", s.NATS, err, s.Data, hint)
	case s.NATS != "" && (errors.Is(err, nats.ErrNoServers) || errors.Is(err, nats.ErrAuthorization)):
		return fmt.Errorf("--nats %s: %w", s.NATS, err)
	}
	return err
}

// started is what a person wants to know at the start.
func (s *serve) started(n *server.Server) string {
	where := "embedded server"
	if s.NATS != "" {
		where = "a server elsewhere"
	}
	data, err := filepath.Abs(s.Data)
	if err != nil {
		data = s.Data
	}
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "parley %s is serving.\n", api.Version)
	line("NATS", "%s (%s, version %s)", n.URL, where, n.Conn.ConnectedServerVersion())
	if n.WebsocketURL != "" {
		line("WebSocket", "%s", n.WebsocketURL)
	}
	scheme := "http"
	if s.TLS.Cert != "" {
		scheme = "https"
	}
	if n.HTTPAddr != "" {
		line("HTTP", "%s://%s", scheme, n.HTTPAddr)
		line("inbox", "%s://%s/inbox/  where humans decide", scheme, n.HTTPAddr)
	}
	line("data", "%s", data)
	line("key", "%s  verifies receipts and transcripts", n.Key())
	if s.NATS == "" {
		line("sync", "%s", s.sync.meaning())
	}
	switch {
	case s.Dev:
		b.WriteString(devWarning)
	case !n.ServesLogins():
		line("logins", "as that server is configured")
	default:
		line("operator", "%s logs in as operator", filepath.Join(data, server.OperatorSeed))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

const devWarning = `
  ******************************************************************
  **  --dev: THERE IS NO LOGIN. Any program on this machine can    **
  **  act as any agent and any human, and unsigned acts are heard. **
  **  For trying things out; never for a deal that counts.         **
  ******************************************************************
`

// fsync is the value of --sync; zero is before each acceptance.
type fsync time.Duration

func (f *fsync) Set(text string) error {
	if text == "always" {
		*f = 0
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("want always, or a time above 0 such as 1s")
	}
	*f = fsync(d)
	return nil
}

func (f *fsync) String() string {
	if *f == 0 {
		return "always"
	}
	return time.Duration(*f).String()
}

func (f *fsync) Type() string { return "duration" }

func (f *fsync) meaning() string {
	if *f == 0 {
		return "always: what is accepted has been fsynced"
	}
	return "every " + f.String() + ": a power failure can lose what was accepted in the last " + f.String()
}
