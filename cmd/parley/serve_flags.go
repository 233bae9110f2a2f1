package main

import (
	"errors"
	"time"

	"github.com/spf13/pflag"

	bindugateway "github.com/parley-asp/parley/gateway/bindu"
	httpgateway "github.com/parley-asp/parley/gateway/http"
	mcpgateway "github.com/parley-asp/parley/gateway/mcp"

	"github.com/parley-asp/parley/ledger"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/turns"
)

func (s *serve) flags(flags *pflag.FlagSet) {
	groupFlags(flags, "Listeners", func(flags *pflag.FlagSet) {
		flags.StringVar(&s.Listen, "listen", "127.0.0.1:4222", "`HOST:PORT` of the embedded NATS server; port 0 picks a free one")
		flags.StringVar(&s.HTTP, "http", "127.0.0.1:8080", "`HOST:PORT` of HTTP; \"\" disables it")
		flags.StringVar(&s.MACP, "macp", "", "`HOST:PORT` of MACP's gRPC, for agents that speak MACP (default: none)")
		flags.StringSliceVar(&s.proxies, "http-proxy", nil, "`ADDRESS` or network of a reverse proxy in front of HTTP, whose X-Forwarded-For names the client; can be repeated")
		flags.StringSliceVar(&s.HTTPOrigins, "http-origins", nil, "`ORIGIN` such as https://acme.com whose pages may call "+httpgateway.Base+"; can be repeated (default: none)")
		flags.StringVar(&s.HTTPURL, "http-url", "", "`URL` at which others reach HTTP, such as https://parley.acme.com; A2A's agent cards and the AI catalog name it (default: that of each request; such cards are signed on loopback only)")
		flags.StringSliceVar(&s.DIDHosts, "did-hosts", nil, "`HOST` whose DID documents 'parley agent add --did' may name; can be repeated (default: none)")
		flags.BoolVar(&s.PrivateWebhooks, "private-webhooks", false, "allow private addresses for webhooks that A2A clients name, and for A2A agents elsewhere")
		flags.BoolVar(&s.BinduAuth, "bindu-auth", false, "ask for a token on "+bindugateway.Base+" (default: anybody may ask how well an agent fits)")
		flags.StringVar(&s.OIDC.Issuer, "oidc-issuer", "", "`URL` of an OpenID Connect issuer whose tokens let principals in at "+mcpgateway.Path+", besides the broker's own")
		flags.StringVar(&s.OIDC.Audience, "oidc-audience", "", "`URL` that its tokens are for: that of "+mcpgateway.Path+" as clients know it")
		flags.StringVar(&s.OIDC.Claim, "oidc-claim", "sub", "`NAME` of the claim with the principal's URI")
		flags.StringVar(&s.Embeddings.URL, "embeddings", "", "`URL` of an endpoint that speaks OpenAI's embeddings; answers on "+bindugateway.Base+" then go by meaning as well as by keywords; PARLEY_EMBEDDINGS_KEY is its key")
		flags.StringVar(&s.Embeddings.Model, "embeddings-model", "", "`NAME` of its model")
		flags.StringVar(&s.Websocket, "websocket", "", "`HOST:PORT` of NATS over WebSocket, for browsers and edge agents; with --dev, pages of the same origin only")
		flags.StringVar(&s.TLS.Cert, "tls-cert", "", "PEM `FILE` with the certificate chain for NATS, WebSocket, HTTP and MACP")
		flags.StringVar(&s.TLS.Key, "tls-key", "", "PEM `FILE` with the key of --tls-cert")
		flags.StringVar(&s.TLS.CA, "tls-ca", "", "PEM `FILE` with the CA that verifies clients (mutual TLS) and the external server")
		flags.BoolVar(&s.Dev, "dev", false, "no logins: any local program can act as anyone; loopback only")
	})
	groupFlags(flags, "Store", func(flags *pflag.FlagSet) {
		flags.StringVar(&s.Data, "data", defaultData, "`DIR` of the store and the keys")
		flags.Var(&s.sync, "sync", "fsync interval of the embedded server, such as 1s; always fsyncs before each acceptance")
		flags.IntVar(&s.Replicas, "replicas", 0, "`N` replicas of each stream; more than 1 needs a cluster at --nats (default: the store's setting, initially 1)")
	})
	groupFlags(flags, "Retention", func(flags *pflag.FlagSet) { retentionFlags(flags, s) })
	groupFlags(flags, "External NATS server", func(flags *pflag.FlagSet) {
		flags.StringVar(&s.NATS, "nats", "", "`URL` of an external NATS server to use instead of an embedded one")
		flags.StringVar(&s.creds, "creds", "", "NATS credentials `FILE` for --nats (default: broker.nk in --data)")
		flags.StringVar(&s.nkey, "nkey", "", "`FILE` with the seed of an nkey for --nats")
		flags.StringVar(&s.context, "context", "", "`NAME` of a nats CLI context with the URL and login")
	})
	groupFlags(flags, "Escalations and deadlines", func(flags *pflag.FlagSet) {
		flags.StringVar(&s.rules, "escalations", "", "YAML or JSON `FILE` with the rules on who decides which escalation, and by when (default: any one human who may decide)")
		flags.StringVar(&s.notify, "notify", "", "YAML or JSON `FILE` with the webhooks and mail addresses to notify of escalations")
		flags.DurationVar(&s.low, "escalation-low", 24*time.Hour, "time to answer an escalation of low urgency")
		flags.DurationVar(&s.medium, "escalation-medium", 4*time.Hour, "time to answer an escalation of medium urgency")
		flags.DurationVar(&s.high, "escalation-high", time.Hour, "time to answer an escalation of high urgency")
		flags.DurationVar(&s.top, "escalation-critical", 15*time.Minute, "time to answer an escalation of critical urgency")
		flags.DurationVar(&s.invitation, "invitation-timeout", 30*time.Second, "time to answer an invitation that sets no timeout")
		flags.DurationVar(&s.parked, "parked-timeout", session.DefaultParked, "time that a turn waits before its principal's standby may take it")
		flags.DurationVar(&s.Claim, "claim-timeout", turns.DefaultTimeout, "time that an agent has to answer a turn that it picked up, after which the turn waits again")
	})
	groupFlags(flags, "Limits", func(flags *pflag.FlagSet) {
		limitFlags(flags, &s.Limits)
		flags.IntVar(&s.Connections, "limit-connections", server.DefaultConnections, "connections to the embedded NATS server per principal; -1 is unlimited")
		flags.IntVar(&s.HTTPConnections, "limit-http", server.DefaultHTTPConnections, "HTTP connections per address; -1 is unlimited")
	})
	groupFlags(flags, "Public log", func(flags *pflag.FlagSet) {
		flags.StringVar(&s.LogOrigin, "log-origin", "", "`NAME` of the public log, such as acme.com/log; another name begins another log; all brokers of an installation give the same (default: parley/ and the broker's key)")
		flags.StringArrayVar(&s.witnesses, "witness", nil, "`KEY URL` of a witness that cosigns the log's checkpoints (C2SP tlog-witness); can be repeated; all brokers of an installation give the same")
		flags.IntVar(&s.Witnesses.Quorum, "witness-quorum", 0, "how many witnesses must cosign a checkpoint before it is published (default: all)")
		flags.DurationVar(&s.Witnesses.Timeout, "witness-timeout", ledger.DefaultWitnessTimeout, "how long a witness may take to answer")
		flags.StringVar(&s.resume, "log-resume", "", "`FILE` with the newest checkpoint of the log that was published, to let a restored log grow again")
	})
	groupFlags(flags, "Log", func(flags *pflag.FlagSet) {
		flags.StringVar(&s.logLevel, "log-level", "warn", "`LEVEL`: debug, info, warn or error")
		flags.BoolVar(&s.logJSON, "log-json", false, "log as JSON")
	})
}

// fsync is the value of --sync. Zero fsyncs before each acceptance.
type fsync time.Duration

func (f *fsync) Set(text string) error {
	if text == "always" {
		*f = 0
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("want always, or a duration above 0 such as 1s")
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
		return "always: every accepted act has been fsynced"
	}
	return "every " + f.String() + ": a power failure can lose the acts accepted in the last " + f.String()
}
