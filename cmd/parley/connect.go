package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-asp/parley/agreement"
	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
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
		flags.String("key", "", "`FILE` with the seed of the key to log in and sign with (default: operator.nk in --data)")
		flags.String("creds", "", "NATS credentials `FILE` to log in and sign with")
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

// A caller is what operators and principals have in common.
type caller interface {
	Sessions(context.Context, api.ListSessions) iter.Seq2[api.SessionSummary, error]
	SessionPage(context.Context, api.ListSessions) (api.Sessions, error)
	ViewPart(context.Context, api.GetSession) (api.SessionView, error)
	EscalationPart(context.Context, api.GetEscalation) (api.EscalationItem, error)
	View(context.Context, performatives.SessionID) (api.SessionView, error)
	Agreement(context.Context, api.GetAgreement) (agreement.Document, error)
	Agreements(context.Context, api.ListAgreements) iter.Seq2[api.AgreementRow, error]
	Envelopes(context.Context, performatives.SessionID, uint64) iter.Seq2[jsontext.Value, error]
	AgentPage(context.Context, api.ListAgents) (api.Agents, error)
	Find(context.Context, api.CallForProposals) (api.Proposals, error)
	VerifyDomain(ctx context.Context, a performatives.Agent, by string) (api.Card, error)
	Card(context.Context, performatives.Agent) (api.Card, error)
	UserJWT(context.Context, performatives.Agent, performatives.Key) (string, error)
	Schema(context.Context, string) (api.Schema, error)
	Schemas(context.Context) ([]api.Schema, error)
	PutSchema(context.Context, string, any) (api.Schema, error)
	Escalations(context.Context, api.ListEscalations) iter.Seq2[api.EscalationItem, error]
	EscalationPage(context.Context, api.ListEscalations) (api.Escalations, error)
	Escalation(context.Context, string) (api.EscalationItem, error)
	ClaimEscalation(context.Context, string, time.Duration) (api.EscalationItem, error)
	TakeOverEscalation(context.Context, string, time.Duration) (api.EscalationItem, error)
	ReleaseEscalation(context.Context, string) (api.EscalationItem, error)
	AssignEscalation(context.Context, string, performatives.Agent) (api.EscalationItem, error)
	CommentEscalation(context.Context, string, string) (api.EscalationItem, error)
	TransferEscalation(context.Context, api.TransferEscalation) (api.EscalationItem, error)
	EscalationHistory(context.Context, string) (api.CaseLog, error)
	WatchEscalations(context.Context, api.WatchEscalations) (api.Watched, error)
	Broker(context.Context) (api.Broker, error)
	Conn() *nats.Conn
	Close() error
}

// A connection is a command's connection to the broker.
type connection struct {
	caller
	operator  *client.Operator // nil with --as
	principal *client.Client   // nil without --as
}

// with connects, calls do within --timeout, and disconnects.
func with(cmd *cobra.Command, do func(context.Context, connection) error) error {
	wait, err := cmd.Flags().GetDuration("timeout")
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

// connect logs in as the flags say. It fails at once if no broker serves, unless
// --wait is set.
func connect(ctx context.Context, cmd *cobra.Command) (connection, error) {
	for {
		c, err := dial(ctx, cmd)
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
func dial(ctx context.Context, cmd *cobra.Command) (connection, error) {
	options, err := credentials(cmd)
	if err != nil {
		return connection{}, err
	}
	files := server.TLS{Cert: text(cmd, "tls-cert"), Key: text(cmd, "tls-key"), CA: text(cmd, "tls-ca")}
	if (files.Cert == "") != (files.Key == "") {
		return connection{}, usage(errors.New("--tls-cert needs --tls-key, and the other way round"))
	}
	options = append(options, client.NATS(nats.RetryOnFailedConnect(false)), client.NATS(files.Client("tls://")...))
	as := performatives.Agent(text(cmd, "as"))
	if as == "" {
		operator, err := client.ConnectOperator(ctx, text(cmd, "url"), options...)
		return connection{caller: operator, operator: operator}, err
	}
	if _, err := performatives.ParseAgent(string(as)); err != nil {
		return connection{}, usage(fmt.Errorf("--as %s: %w", as, err))
	}
	principal, err := client.Connect(ctx, text(cmd, "url"), as, options...)
	return connection{caller: principal, principal: principal}, err
}

// credentials returns the login: the one that a flag names, else the operator's key
// in --data, else none, which works with a broker under --dev.
func credentials(cmd *cobra.Command) ([]client.Option, error) {
	switch {
	case text(cmd, "key") != "":
		return []client.Option{client.SeedFile(text(cmd, "key"))}, nil
	case text(cmd, "creds") != "":
		return []client.Option{client.Creds(text(cmd, "creds"))}, nil
	case text(cmd, "context") != "":
		return []client.Option{client.Context(text(cmd, "context"))}, nil
	case text(cmd, "as") != "":
		return []client.Option{client.Unsigned()}, nil
	}
	seed := filepath.Join(text(cmd, "data"), server.OperatorSeed)
	_, err := os.Stat(seed)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []client.Option{client.Unsigned()}, nil
	case err != nil:
		return nil, err
	}
	return []client.Option{client.SeedFile(seed)}, nil
}

// explain adds to a connection error what the user can do about it.
func explain(cmd *cobra.Command, err error) error {
	url := text(cmd, "url")
	if url == "" {
		url = nats.DefaultURL
	}
	var hint string
	_, unreachable := errors.AsType[*net.OpError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, refused := errors.AsType[*session.Refusal](err)
	switch {
	case err == nil, refused:
		return err
	case untrusted:
		hint = "The certificate of the server at " + url + " is not trusted. --tls-ca FILE names its CA."
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		hint = "The broker at " + url + " refused this login.\nLog in as a registered principal with --as agent://… --key FILE, or as the operator with --data DIR, which holds " + server.OperatorSeed + "."
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
