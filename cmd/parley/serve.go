package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/client/natscontext"
	"github.com/parley-asp/parley/internal/natslogin"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/store"
)

type serve struct {
	server.Options
	kit                  kit
	config               string // the file with the rest of the flags
	creds, context, nkey string
	logLevel             string
	logJSON              bool
	level                zap.AtomicLevel
}

func serveCommand() *cobra.Command {
	s := &serve{}
	cmd := &cobra.Command{
		Use: "serve", Short: "run the broker", Args: args(cobra.NoArgs),
		Long: `Runs the broker with an embedded NATS server (JetStream in --data) or on an
external one (--nats, version ` + store.MinServer + ` or later). On SIGTERM or SIGINT it finishes
the acts that it accepted and stops. A second signal stops it at once.

On SIGHUP it reads again: --config, of which log-level, limit-*, escalations, notify
and sign-in change at run time, the files that the last three name, and those of
--tls-cert and --tls-key. If anything of that is wrong, nothing changes and the log
says why. It also says which other keys have changed and need a restart.

--data holds the broker's keys, mode 0600: broker.nk signs receipts, broker.login.nk
logs in to NATS, operator.nk logs in as operator. Back up broker.nk: without it,
a broker with an embedded store does not start.

'parley nats-config' prints the configuration that an external server needs. The
broker then authorizes its logins. In operator mode (nats-config --format nsc),
pass ` + server.CredsFile + ` in --data to --creds. With other --creds, --nkey or --context,
the external server decides who may log in.`,
		Example: `  parley serve --dev            try things out without logins
  parley serve --data /var/lib/parley --listen 0.0.0.0:4222
  parley serve --listen 0.0.0.0:4222 --tls-cert cert.pem --tls-key key.pem
  parley serve --config /etc/parley/parley.yaml
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
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	again := givenAgain(cmd.Flags())
	if s.config != "" {
		if err := readConfig(s.config, cmd.Flags()); err != nil {
			return usage(err)
		}
	}
	if err := s.complete(cmd.Flags(), cmd.ErrOrStderr()); err != nil {
		return err
	}
	for _, name := range unknownVariables(cmd.Root(), os.Environ()) {
		s.Log.Warn("an environment variable sets no flag", zap.String("variable", name))
	}
	for _, name := range []string{"listen", "sync"} {
		if s.NATS != "" && cmd.Flags().Changed(name) {
			s.Log.Warn("this flag is for the embedded server, and --nats names another one: it does nothing", zap.String("flag", "--"+name))
		}
	}
	collectLess()
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	serves := make(chan zap.Field, 1) // the broker, once there is one
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		var broker []zap.Field
		select {
		case known := <-serves:
			broker = append(broker, known)
		default:
		}
		s.note(cmd, "parley: stopping; a second signal stops at once", broker...)
		stop()
		<-signals
		os.Exit(failed)
	}()
	n, err := server.Start(ctx, s.Options)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		s.note(cmd, "parley: stopped while starting")
		return nil // as it was told to: an init system would call it failed
	}
	if err != nil {
		return s.explainStart(err)
	}
	broker := zap.String("broker", n.ID)
	serves <- broker
	s.Log = s.Log.With(broker) // what this command logs names it, too
	s.started(cmd, n)
	if err := s.kit.serves(ctx, n, s.scheme(), cmd.InOrStdin(), cmd.OutOrStdout()); err != nil {
		return err
	}
	failed := s.reloads(ctx, cmd, hangups, n, again)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	err = n.Close(ending)
	s.note(cmd, "parley: broker "+n.ID+" has stopped", broker)
	return errors.Join(failed, err)
}

// gcPercent is GOGC for a broker: about 5 % less CPU than at 100, for up to half more heap. A larger one
// saves little more (docs/PERFORMANCE.md).
const gcPercent = 200

// collectLess sets gcPercent, unless GOGC or GOMEMLIMIT is set.
func collectLess() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// complete turns the flags into server options. Its error joins every fault, with the line of the configuration file
// that each belongs to.
func (s *serve) complete(flags *pflag.FlagSet, errs io.Writer) error {
	s.Embeddings.Key, _ = lookup("PARLEY_EMBEDDINGS_KEY")
	if s.OTLP.URL == "" {
		s.OTLP.URL, _ = lookup("OTEL_EXPORTER_OTLP_ENDPOINT")
	}
	var err error
	if s.Log, s.level, err = newLog(errs, s.logLevel, s.logJSON); err != nil {
		err = fault(fmt.Errorf("--log-level: %w", err), "log-level")
	}
	err = errors.Join(err, s.external(), s.checkTogether(), s.checkRetention(flags), s.checkNames(), checkLimits(flags), s.Check())
	if err == nil {
		return nil
	}
	return usage(withLines(flags, err))
}

// external sets the login to an external NATS server.
func (s *serve) external() error {
	if s.Websocket != "" && (s.NATS != "" || s.context != "") {
		return fault(errors.New("--websocket is for the embedded server; configure WebSocket on the external server itself"), "websocket", "nats", "context")
	}
	if s.context != "" {
		c, err := natscontext.Read(s.context)
		if err != nil {
			return fault(fmt.Errorf("--context: %w", err), "context")
		}
		if s.NATS == "" {
			s.NATS = c.URL
		}
		s.NATSCreds = c.Creds
		s.NATSOptions = append([]nats.Option{}, c.Options()...) // not nil: a context may have no login
		if c.Creds == "" {
			s.NATSSeed = c.NKey
		}
	}
	if s.NATS == "" {
		if s.creds != "" || s.nkey != "" {
			return fault(errors.New("--creds and --nkey are for an external NATS server: set --nats"), "creds", "nkey")
		}
		return nil
	}
	if s.creds != "" {
		s.NATSCreds = s.creds
	}
	if s.nkey != "" {
		s.NATSSeed = s.nkey
	}
	return nil
}

// explainStart adds to a start error what the user can do about it.
func (s *serve) explainStart(err error) error {
	_, wrong := errors.AsType[*server.Fault](err)
	seed, unread := errors.AsType[*server.SeedError](err)
	switch {
	case wrong:
		return usage(err)
	case unread:
		return adviseSeed(err, filepath.Base(seed.Path))
	case errors.Is(err, context.Canceled):
		return errors.New("stopped while starting")
	case errors.Is(err, syscall.EADDRINUSE), strings.Contains(err.Error(), "address already in use"):
		return advise(err, "Another process uses the address, perhaps another broker. Set one of these to another address: %s.", strings.Join(s.Addresses(), ", "))
	case errors.Is(err, server.ErrSharedKey):
		return advise(err, "'parley nats-config --data %s' prints the configuration for its login key. Until the server has it, --shared-keys goes on as before.", s.Data)
	case errors.Is(err, server.ErrKeyLost):
		return advise(err, "Restore %s, and with it %s and %s if the key was rotated, from a backup or another broker. For a new installation, set --data to an empty directory.", filepath.Join(s.Data, server.BrokerSeed), server.BrokerKeysFile, server.BrokerSecret)
	case errors.Is(err, server.ErrKeyReplaced):
		return advise(err, "Copy %s, %s and %s to %s from where the key was replaced, or from a backup made since.", server.BrokerSeed, server.BrokerKeysFile, server.BrokerSecret, s.Data)
	case errors.Is(err, store.ErrLost):
		return advise(err, "Restore a backup. Or go on without what they held: --accept-lost names them, and empty ones are made.")
	case errors.Is(err, store.ErrShards):
		return advise(err, "Start with the --shards that the store was made with.")
	case errors.Is(err, store.ErrNotDev):
		return advise(err, "Start without --dev, or set --data or --nats to another store.")
	case errors.Is(err, server.ErrInUse):
		return advise(err, "Is another broker running on --data %s? Several brokers share one NATS server: --nats.", s.Data)
	case errors.Is(err, server.ErrNotLetIn):
		hint := "or set --creds, --nkey or --context to another login"
		if own := filepath.Join(s.Data, server.CredsFile); s.NATSCreds == "" {
			if _, missing := os.Stat(own); missing == nil {
				hint = "a server in operator mode needs --creds " + own
			}
		}
		return advise(fmt.Errorf("--nats %s: %w", natslogin.WithoutPassword(s.NATS), err), "'parley nats-config --data %s' prints the configuration that the server needs; %s.", s.Data, hint)
	case s.NATS != "" && server.WrongTLS(err, "--nats-ca") != "":
		return advise(fmt.Errorf("--nats %s: %w", natslogin.WithoutPassword(s.NATS), err), "%s", server.WrongTLS(err, "--nats-ca"))
	case s.NATS != "" && (errors.Is(err, nats.ErrNoServers) || errors.Is(err, nats.ErrAuthorization)):
		return fmt.Errorf("--nats %s: %w", natslogin.WithoutPassword(s.NATS), err)
	}
	return err
}

// adviseSeed says what to do about a key file of the data directory without a seed.
func adviseSeed(err error, file string) error {
	switch file {
	case server.BrokerSeed:
		return advise(err, "Restore it from a backup or another broker: no broker starts on its store with another key.")
	case server.OperatorSeed:
		return advise(err, "Restore it from a backup, or delete it: the next start makes another.")
	}
	return advise(err, "Restore it from a backup, or delete it: the next start makes another, .creds files may be void, and an external server has to be told.")
}

func (s *serve) scheme() string {
	if s.TLS.Cert != "" {
		return "https"
	}
	return "http"
}
