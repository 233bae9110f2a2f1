package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/inclusion"
	"github.com/parley-asp/parley/internal/natscontext"
	"github.com/parley-asp/parley/ledger"
	"github.com/parley-asp/parley/notify"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/turns"
)

type serve struct {
	server.Options
	sync                   fsync
	creds, context, nkey   string
	rules, notify, resume  string
	proxies, witnesses     []string
	logLevel               string
	logJSON                bool
	low, medium, high, top time.Duration
	invitation, parked     time.Duration
}

func serveCommand() *cobra.Command {
	s := &serve{}
	cmd := &cobra.Command{
		Use: "serve", Short: "run the broker", Args: args(cobra.NoArgs),
		Long: `Runs the broker with an embedded NATS server (JetStream in --data) or on an
external one (--nats, version ` + store.MinServer + ` or later). On SIGTERM or SIGINT it finishes
the acts that it accepted and stops. A second signal stops it at once.

--data holds the broker's keys, mode 0600: broker.nk signs receipts, operator.nk
logs in as operator. Back up broker.nk: a broker without it signs with a new key.

'parley nats-config' prints the configuration that an external server needs. The
broker then authorizes its logins. In operator mode (nats-config --format nsc),
pass ` + server.CredsFile + ` in --data to --creds. With other --creds, --nkey or --context,
the external server decides who may log in.`,
		Example: `  parley serve --dev            try things out without logins
  parley serve --data /var/lib/parley --listen 0.0.0.0:4222
  parley serve --listen 0.0.0.0:4222 --tls-cert cert.pem --tls-key key.pem
  parley serve --nats nats://nats.example.com --replicas 3
  parley serve --nats nats://nats.example.com --creds parley-data/broker.creds`,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	s.flags(cmd.Flags())
	return cmd
}

// stopWithin bounds a graceful shutdown.
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
		return s.explainStart(err)
	}
	note(cmd, s.started(n))
	<-ctx.Done()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	return n.Close(ending)
}

// complete turns the flags into server options.
func (s *serve) complete(cmd *cobra.Command) error {
	if (s.Embeddings.URL == "") != (s.Embeddings.Model == "") {
		return usage(errors.New("set --embeddings and --embeddings-model together or not at all"))
	}
	if (s.OIDC.Issuer == "") != (s.OIDC.Audience == "") {
		return usage(errors.New("set --oidc-issuer and --oidc-audience together or not at all: tokens for another service let nobody in"))
	}
	s.Embeddings.Key, _ = lookup("PARLEY_EMBEDDINGS_KEY")
	if err := s.checkRetention(cmd); err != nil {
		return err
	}
	ms := func(d time.Duration) int64 { return d.Milliseconds() }
	for _, d := range []time.Duration{s.low, s.medium, s.high, s.top, s.invitation} {
		if d < time.Millisecond {
			return usage(errors.New("the --escalation times and --invitation-timeout are at least 1ms"))
		}
	}
	if s.parked < time.Millisecond || s.parked > session.LongestDuration {
		return usage(fmt.Errorf("--parked-timeout is 1ms to %s", session.LongestDuration))
	}
	if s.Claim < time.Millisecond || s.Claim > turns.LongestTimeout {
		return usage(fmt.Errorf("--claim-timeout is 1ms to %s", turns.LongestTimeout))
	}
	s.Policy = performatives.Policy{
		InvitationTimeout: ms(s.invitation), ParkedTimeout: ms(s.parked),
		EscalationLow: ms(s.low), EscalationMedium: ms(s.medium), EscalationHigh: ms(s.high), EscalationCritical: ms(s.top),
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
	if s.notify != "" {
		if s.Notify, err = notify.Load(s.notify); err != nil {
			return usage(fmt.Errorf("--notify: %w", err))
		}
	}
	if s.resume != "" {
		checkpoint, err := os.ReadFile(s.resume)
		if err != nil {
			return usage(fmt.Errorf("--log-resume: %w", err))
		}
		s.LogResume = string(checkpoint)
	}
	for _, text := range s.witnesses {
		vkey, url, _ := strings.Cut(strings.TrimSpace(text), " ")
		key, err := inclusion.ParseWitness(vkey)
		if err != nil {
			return usage(fmt.Errorf("--witness: want \"KEY URL\": %w", err))
		}
		s.Witnesses.All = append(s.Witnesses.All, ledger.Witness{Key: key, URL: strings.TrimSpace(url)})
	}
	if err := s.Witnesses.Check(); err != nil {
		return usage(fmt.Errorf("--witness: %w", err))
	}
	for _, proxy := range s.proxies {
		network, err := parseNetwork(proxy)
		if err != nil {
			return usage(fmt.Errorf("--http-proxy %s: want an address or a network, such as 10.0.0.0/8", proxy))
		}
		s.HTTPProxies = append(s.HTTPProxies, network)
	}
	return s.external()
}

// parseNetwork reads an address or a network in CIDR notation.
func parseNetwork(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	return netip.ParsePrefix(text)
}

// external sets the login to an external NATS server.
func (s *serve) external() error {
	if s.Websocket != "" && (s.NATS != "" || s.context != "") {
		return usage(errors.New("--websocket is for the embedded server; configure WebSocket on the external server itself"))
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
		s.NATSOptions = append([]nats.Option{}, c.Options()...) // not nil: a context may have no login
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
			return usage(errors.New("--creds and --nkey are for an external NATS server: set --nats"))
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

// explainStart adds to a start error what the user can do about it.
func (s *serve) explainStart(err error) error {
	switch {
	case errors.Is(err, server.ErrTLS):
		return usage(errors.New("--tls-cert needs --tls-key, and --tls-ca of an embedded server needs both"))
	case errors.Is(err, context.Canceled):
		return errors.New("stopped while starting")
	case errors.Is(err, syscall.EADDRINUSE), strings.Contains(err.Error(), "address already in use"):
		return advise(err, "Another process uses the address, perhaps another broker. Set --listen (%s) or --http (%s) to another one.", s.Listen, s.HTTP)
	case errors.Is(err, server.ErrInUse):
		return advise(err, "Is another broker running on --data %s? Several brokers share one NATS server: --nats.", s.Data)
	case errors.Is(err, server.ErrNotLetIn):
		hint := "or set --creds, --nkey or --context to another login"
		if own := filepath.Join(s.Data, server.CredsFile); s.NATSCreds == "" {
			if _, missing := os.Stat(own); missing == nil {
				hint = "a server in operator mode needs --creds " + own
			}
		}
		return advise(fmt.Errorf("--nats %s: %w", s.NATS, err), "'parley nats-config --data %s' prints the configuration that the server needs; %s.", s.Data, hint)
	case s.NATS != "" && (errors.Is(err, nats.ErrNoServers) || errors.Is(err, nats.ErrAuthorization)):
		return fmt.Errorf("--nats %s: %w", s.NATS, err)
	}
	return err
}

// started describes the running broker.
func (s *serve) started(n *server.Server) string {
	where := "embedded server"
	if s.NATS != "" {
		where = "external server"
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
	if n.MACPAddr != "" {
		line("MACP", "%s", n.MACPAddr)
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
		line("logins", "as the external server is configured")
	default:
		line("operator", "%s logs in as operator", filepath.Join(data, server.OperatorSeed))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

const devWarning = `
  ******************************************************************
  **  --dev: THERE IS NO LOGIN. Any program on this machine can    **
  **  act as any agent or human, and unsigned acts are accepted.   **
  **  Use it to try things out, never for a real negotiation.      **
  ******************************************************************
`
