package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/internal/natslogin"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
)

const (
	defaultData    = "./parley-data"
	answerWithin   = 10 * time.Second // how long a command waits for the broker
	retryEvery     = 100 * time.Millisecond
	completeWithin = 2 * time.Second // how long completion waits for the broker
	maxCompletions = 100
)

// connects adds the connection flags to a command and its subcommands.
func connects(cmd *cobra.Command) *cobra.Command {
	groupFlags(cmd.PersistentFlags(), "Connection flags", func(flags *pflag.FlagSet) {
		flags.String("url", "", "`URL` of the broker's NATS server (default: "+nats.DefaultURL+")")
		flags.String("as", "", "act as this principal, the `URI` agent://… or human://… (default: the operator)")
		flags.String("key", "", "`FILE` with the seed of the key to sign with")
		flags.String("login", "", "`FILE` with the seed of the key to log in with (default: the file beside --key, alpha.login.nk for alpha.nk; without --as operator.nk in --data)")
		flags.String("creds", "", "NATS credentials `FILE` to log in with")
		flags.Bool("shared-keys", false, "log in with --key, as before login keys; for one release")
		flags.String("context", "", "`NAME` of the nats CLI context to connect with")
		flags.String("data", defaultData, "the broker's data `DIR`, which holds operator.nk")
		flags.String("tls-ca", "", "PEM `FILE` with the CA of the server's certificate (default: the system's CAs)")
		flags.String("tls-cert", "", "PEM `FILE` with a client certificate, for mutual TLS")
		flags.String("tls-key", "", "PEM `FILE` with the key of --tls-cert")
		flags.Duration("timeout", answerWithin, "how long to wait for the broker")
		flags.Bool("wait", false, "wait until a broker serves, at most --timeout")
	})
	cmd.RegisterFlagCompletionFunc("as", completeFlag(completeAgents(""))) //nolint:errcheck // the flag exists
	return cmd
}

// A connection is a command's connection to the broker.
type connection struct {
	*client.Calls
	operator  *client.Operator // nil with --as
	principal *client.Client   // nil without --as
}

// Close closes the connection.
func (c connection) Close() error {
	if c.principal != nil {
		return c.principal.Close()
	}
	return c.operator.Close()
}

// timeout is the value of --timeout.
func timeout(cmd *cobra.Command) (time.Duration, error) {
	wait, err := cmd.Flags().GetDuration("timeout")
	if err == nil && wait <= 0 {
		err = usage(errors.New("--timeout is above 0"))
	}
	return wait, err
}

// with connects, calls do within --timeout, and disconnects.
func with(cmd *cobra.Command, do func(context.Context, connection) error) error {
	wait, err := timeout(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), wait)
	defer cancel()
	c, err := connect(ctx, cmd)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // everything was answered
	return explain(cmd, do(ctx, c))
}

// manyTimes connects, and calls do, until the user interrupts it. --timeout limits each request.
func manyTimes(cmd *cobra.Command, do func(context.Context, connection) error) error {
	wait, err := timeout(cmd)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	first, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	c, err := connect(first, cmd, client.Limit(wait))
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // everything was answered
	return explain(cmd, do(ctx, c))
}

// follows connects, and calls do until it ends or the user interrupts it, which is no error.
func follows(cmd *cobra.Command, do func(context.Context, connection) error) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	c, err := connect(ctx, cmd)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // everything was answered
	err = do(ctx, c)
	if ctx.Err() != nil {
		return nil
	}
	return explain(cmd, err)
}

// pause waits for a tick, or until the context ends.
func pause(ctx context.Context, ticker *time.Ticker) error {
	select {
	case <-ticker.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// connect logs in as the flags say. It fails at once if no broker serves, unless
// --wait is set.
func connect(ctx context.Context, cmd *cobra.Command, more ...client.Option) (connection, error) {
	for {
		c, err := dial(ctx, cmd, more...)
		if err == nil && asked(cmd, "wait") {
			if _, err = c.Broker(ctx); err != nil {
				c.Close() //nolint:errcheck // nothing was asked
			}
		}
		_, misuse := errors.AsType[misused](err)
		_, refused := errors.AsType[*session.Refusal](err)
		if err == nil || misuse || refused || !asked(cmd, "wait") {
			return c, explain(cmd, err)
		}
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			return connection{}, explain(cmd, err)
		}
	}
}

// dial connects once. The operator's key may appear only when the broker has started.
func dial(ctx context.Context, cmd *cobra.Command, more ...client.Option) (connection, error) {
	if url := text(cmd, "url"); strings.HasPrefix(url, "http://") || strings.HasPrefix(url, "https://") {
		return connection{}, usage(errors.New("--url is the broker's NATS address, such as " + nats.DefaultURL))
	}
	options, err := credentials(cmd)
	if err != nil {
		return connection{}, err
	}
	files, err := tlsFiles(cmd)
	if err != nil {
		return connection{}, err
	}
	options = append(options, client.NATS(nats.RetryOnFailedConnect(false)), client.NATS(files.Client("tls://")...))
	options = append(options, more...)
	as := performatives.Agent(text(cmd, "as"))
	if as == "" {
		operator, err := client.ConnectOperator(ctx, text(cmd, "url"), options...)
		if err != nil {
			return connection{}, err
		}
		return connection{Calls: &operator.Calls, operator: operator}, nil
	}
	if _, err := performatives.ParseAgent(string(as)); err != nil {
		return connection{}, usage(fmt.Errorf("--as %s: %w", as, err))
	}
	principal, err := client.Connect(ctx, text(cmd, "url"), as, options...)
	if err != nil {
		return connection{}, err
	}
	return connection{Calls: &principal.Calls, principal: principal}, nil
}

// tlsFiles are those that the connection flags name.
func tlsFiles(cmd *cobra.Command) (server.TLS, error) {
	files := server.TLS{Cert: text(cmd, "tls-cert"), Key: text(cmd, "tls-key"), CA: text(cmd, "tls-ca")}
	if (files.Cert == "") != (files.Key == "") {
		return files, usage(errors.New("--tls-cert needs --tls-key, and the other way round"))
	}
	return files, nil
}

// credentials returns how to sign and to log in: as flags say, else with the operator's key
// in --data, else not at all, which works with a broker under --dev.
func credentials(cmd *cobra.Command) (options []client.Option, err error) {
	key, as := text(cmd, "key"), text(cmd, "as")
	switch {
	case key != "" && as != "":
		options = append(options, client.SeedFile(key))
	case key != "": // an operator signs nothing
		options = append(options, client.LoginFile(key))
	default:
		options = append(options, client.Unsigned())
	}
	if asked(cmd, "shared-keys") {
		options = append(options, client.SharedKeys())
	}
	switch {
	case text(cmd, "login") != "":
		return append(options, client.LoginFile(text(cmd, "login"))), nil
	case text(cmd, "creds") != "":
		return append(options, client.Creds(text(cmd, "creds"))), nil
	case text(cmd, "context") != "":
		return append(options, client.Context(text(cmd, "context"))), nil
	case key != "", as != "":
		return options, nil
	}
	seed := filepath.Join(text(cmd, "data"), server.OperatorSeed)
	if _, err := os.Stat(seed); errors.Is(err, fs.ErrNotExist) {
		return options, nil
	}
	return append(options, client.LoginFile(seed)), nil
}

// explain adds to a connection error what the user can do about it.
func explain(cmd *cobra.Command, err error) error {
	url := text(cmd, "url")
	if url == "" {
		url = nats.DefaultURL
	}
	url = natslogin.WithoutPassword(url)
	var hint string
	_, unreachable := errors.AsType[*net.OpError](err)
	_, refused := errors.AsType[*session.Refusal](err)
	switch {
	case errors.Is(err, &session.Refusal{Code: session.Unavailable}):
		hint = "Run the command again. If that does not help, the broker's log says why, and /readyz on its --monitor."
	case err == nil, refused:
		return err
	case server.WrongTLS(err, "--tls-ca") != "":
		hint = "TLS with " + url + " failed. " + server.WrongTLS(err, "--tls-ca")
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		hint = "The broker at " + url + " refused this login.\nLog in as a registered principal with --as agent://… --key alpha.nk, whose login key is in alpha.login.nk, or as the operator with --data DIR, which holds " + server.OperatorSeed + "."
	case errors.Is(err, natslogin.ErrNonce):
		hint = "Nothing was signed. Is " + url + " the server that you mean?"
	case errors.Is(err, nats.ErrNoResponders):
		hint = "A NATS server runs at " + url + ", but no parley broker uses it."
	case errors.Is(err, nats.ErrNoServers), unreachable, errors.Is(err, nats.ErrTimeout):
		hint = "Cannot connect to " + url + ".\nStart a broker with 'parley serve', or name another address with --url or PARLEY_URL."
	case errors.Is(err, context.DeadlineExceeded):
		hint = "The broker at " + url + " did not answer in time. --timeout sets how long to wait."
	default:
		return err
	}
	return advise(err, "%s", hint)
}
