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

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
)

const (
	defaultData = "./parley-data"
	// answerWithin is how long a command waits for the broker.
	answerWithin = 10 * time.Second
)

// connects gives a command and those below it the flags of a connection.
func connects(cmd *cobra.Command) *cobra.Command {
	flags := cmd.PersistentFlags()
	flags.String("url", "", "where the broker's NATS server is (default "+nats.DefaultURL+")")
	flags.String("data", defaultData, "the broker's data directory, for its operator.nk")
	flags.String("as", "", "act as this principal: agent://… or human://… (default: the operator)")
	flags.String("key", "", "file with the seed of the key to log in and sign with (default: the operator's, where --data has it)")
	flags.String("creds", "", "NATS credentials file to log in and sign with")
	flags.String("context", "", "context of the nats command line to connect with")
	flags.String("tls-ca", "", "PEM file with the CA of the server's certificate (default: those of the system)")
	flags.String("tls-cert", "", "PEM file with a certificate to show, where the server asks for one")
	flags.String("tls-key", "", "PEM file with the key of --tls-cert")
	flags.Duration("timeout", answerWithin, "how long to wait for the broker")
	return cmd
}

// A caller is an operator or a principal: what both may ask.
type caller interface {
	Sessions(context.Context, api.ListSessions) iter.Seq2[api.SessionSummary, error]
	View(context.Context, performatives.SessionID) (api.SessionView, error)
	Envelopes(context.Context, performatives.SessionID, uint64) iter.Seq2[jsontext.Value, error]
	Agents(context.Context, api.ListAgents) iter.Seq2[api.Card, error]
	Card(context.Context, performatives.Agent) (api.Card, error)
	UserJWT(context.Context, performatives.Agent, performatives.Key) (string, error)
	Schema(context.Context, string) (api.Schema, error)
	Schemas(context.Context) ([]api.Schema, error)
	PutSchema(context.Context, string, any) (api.Schema, error)
	Escalations(context.Context, api.ListEscalations) iter.Seq2[api.EscalationItem, error]
	EscalationPage(context.Context, api.ListEscalations) (api.Escalations, error)
	Escalation(context.Context, string) (api.EscalationItem, error)
	ClaimEscalation(context.Context, string, time.Duration) (api.EscalationItem, error)
	ReleaseEscalation(context.Context, string) (api.EscalationItem, error)
	AssignEscalation(context.Context, string, performatives.Agent) (api.EscalationItem, error)
	CommentEscalation(context.Context, string, string) (api.EscalationItem, error)
	TransferEscalation(context.Context, api.TransferEscalation) (api.EscalationItem, error)
	EscalationHistory(context.Context, string) (api.CaseLog, error)
	WatchEscalations(context.Context, string, time.Duration) (api.Watched, error)
	Broker(context.Context) (api.Broker, error)
	Conn() *nats.Conn
	Close() error
}

// A connection is how a command reaches the broker.
type connection struct {
	caller
	operator  *client.Operator // nil with --as
	principal *client.Client   // nil without
}

// with connects, does something within --timeout, and disconnects.
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

// connect logs in as the flags say. A command does not wait for a server that
// is not there.
func connect(ctx context.Context, cmd *cobra.Command) (connection, error) {
	options, err := credentials(cmd)
	if err != nil {
		return connection{}, err
	}
	files := server.TLS{Cert: text(cmd, "tls-cert"), Key: text(cmd, "tls-key"), CA: text(cmd, "tls-ca")}
	if (files.Cert == "") != (files.Key == "") {
		return connection{}, usage(errors.New("--tls-cert and --tls-key go together"))
	}
	options = append(options, client.NATS(nats.RetryOnFailedConnect(false)), client.NATS(files.Client("tls://")...))
	as := performatives.Agent(text(cmd, "as"))
	if as == "" {
		operator, err := client.ConnectOperator(ctx, text(cmd, "url"), options...)
		return connection{caller: operator, operator: operator}, explain(cmd, err)
	}
	if _, err := performatives.ParseAgent(string(as)); err != nil {
		return connection{}, usage(fmt.Errorf("--as %s: %w", as, err))
	}
	principal, err := client.Connect(ctx, text(cmd, "url"), as, options...)
	return connection{caller: principal, principal: principal}, explain(cmd, err)
}

// credentials are what to log in and sign with: what is named, else for the operator
// the key that the broker made, else nothing, as a broker under --dev lets in.
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

// explain adds to an error of the connection what a person can do about it.
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
		hint = "The server at " + url + " showed a certificate that is not trusted: --tls-ca FILE names the CA that it is of."
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		hint = "The broker at " + url + " did not let this login in.\nGive the key of a registered principal (--as agent://… --key FILE), or the operator's: --data DIR with " + server.OperatorSeed + " in it."
	case errors.Is(err, nats.ErrNoResponders):
		hint = "A NATS server answers at " + url + ", but no parley broker does."
	case errors.Is(err, nats.ErrNoServers), unreachable, errors.Is(err, nats.ErrTimeout):
		hint = "There is no connection to " + url + ".\nIs a broker running there? `parley serve` starts one; --url or PARLEY_URL names another."
	case errors.Is(err, context.DeadlineExceeded):
		hint = "The broker at " + url + " did not answer in time; --timeout is how long to wait."
	default:
		return err
	}
	return fmt.Errorf("%w\n%s", err, hint)
}

// all takes a list to its end.
func all[E any](list iter.Seq2[E, error]) ([]E, error) {
	items := []E{}
	for item, err := range list {
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}
