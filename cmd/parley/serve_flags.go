package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/ledger"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/broker/turns"
	bindugateway "github.com/parley-asp/parley/gateway/bindu"
	mcpgateway "github.com/parley-asp/parley/gateway/mcp"
	"github.com/parley-asp/parley/inbox/notify"
	"github.com/parley-asp/parley/inbox/openid"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement/inclusion"
)

func (s *serve) flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.config, configFlag, "", "YAML `FILE` with any of the flags below; the command line and the environment override it (default: none)")
	groupFlags(flags, "Listeners", func(flags *pflag.FlagSet) {
		flags.StringVar(&s.Listen, "listen", "127.0.0.1:4222", "`HOST:PORT` of the embedded NATS server; port 0 picks a free one")
		flags.StringVar(&s.HTTP, "http", "127.0.0.1:8080", "`HOST:PORT` of HTTP; \"\" disables it")
		flags.StringVar(&s.MACP, "macp", "", "`HOST:PORT` of MACP's gRPC, for agents that speak MACP (default: none)")
		flags.StringVar(&s.Monitor, "monitor", "", "`HOST:PORT` of probes for an orchestrator and of /metrics for Prometheus, plain HTTP without a login: loopback or an operator's network (default: none)")
		flags.StringVar(&s.OTLP.URL, "otlp", "", "base `URL` of an OpenTelemetry collector to export traces, metrics and the log to, by OTLP over HTTP, such as http://localhost:4318; OTEL_EXPORTER_OTLP_HEADERS has its secrets (default: OTEL_EXPORTER_OTLP_ENDPOINT, else none)")
		flags.Float64Var(&s.OTLP.Sample, "otlp-sample", 1, "share of traces to export, 0 to 1; a trace that a sender's traceparent names is exported if that says so")
		flags.Var(&listed{add: s.addProxies}, "http-proxy", "`ADDRESS` or network of a reverse proxy in front of HTTP, whose X-Forwarded-For names the client; can be repeated")
		flags.StringSliceVar(&s.HTTPOrigins, "http-origins", nil, "`ORIGIN` such as https://acme.com whose pages may call "+api.HTTPBase+"; can be repeated (default: none)")
		flags.StringVar(&s.HTTPURL, "http-url", "", "`URL` at which others reach HTTP, such as https://parley.acme.com; A2A's agent cards and the AI catalog name it (default: that of each request; such cards are signed on loopback only)")
		flags.StringSliceVar(&s.DIDHosts, "did-hosts", nil, "`HOST` whose DID documents 'parley agent add --did' may name; can be repeated (default: none)")
		flags.BoolVar(&s.PrivateWebhooks, "private-webhooks", false, "allow private addresses for webhooks that A2A clients and wakeups name, for A2A agents elsewhere, and for agents that are asked by URL")
		flags.BoolVar(&s.BinduAuth, "bindu-auth", false, "ask for a token on "+bindugateway.Base+" (default: anybody may ask how well an agent fits)")
		flags.StringVar(&s.OIDC.Issuer, "oidc-issuer", "", "`URL` of an OpenID Connect issuer whose tokens let principals in at "+mcpgateway.Path+", besides the broker's own")
		flags.StringVar(&s.OIDC.Audience, "oidc-audience", "", "`URL` that its tokens are for: that of "+mcpgateway.Path+" as clients know it")
		flags.StringVar(&s.OIDC.Claim, "oidc-claim", "sub", "`NAME` of the claim with the principal's URI")
		flags.Var(reads(&s.SignIn, openid.Load), "sign-in", "YAML or JSON `FILE` with the OpenID provider that signs people in to the pages, and who is who; needs --http-url (default: the keys of their browsers do)")
		flags.StringVar(&s.Embeddings.URL, "embeddings", "", "`URL` of an endpoint that speaks OpenAI's embeddings; answers on "+bindugateway.Base+" and cards then go by meaning as well as by keywords; PARLEY_EMBEDDINGS_KEY is its key")
		flags.StringVar(&s.Embeddings.Model, "embeddings-model", "", "`NAME` of its model")
		flags.StringVar(&s.Websocket, "websocket", "", "`HOST:PORT` of NATS over WebSocket, for browsers and edge agents; with --dev, pages of the same origin only")
		flags.StringVar(&s.TLS.Cert, "tls-cert", "", "PEM `FILE` with the certificate chain for NATS, WebSocket, HTTP and MACP")
		flags.StringVar(&s.TLS.Key, "tls-key", "", "PEM `FILE` with the key of --tls-cert")
		flags.StringVar(&s.TLS.CA, "tls-ca", "", "PEM `FILE` with the CA that verifies clients (mutual TLS), and --nats without --nats-ca")
		flags.BoolVar(&s.Dev, "dev", false, "no logins: any local program can act as anyone; loopback only")
	})
	groupFlags(flags, "Store", func(flags *pflag.FlagSet) {
		flags.StringVar(&s.Data, "data", defaultData, "`DIR` of the store and the keys")
		flags.Var((*fsync)(&s.Sync), "sync", "fsync interval of the embedded server, such as 1s; always fsyncs before each acceptance")
		flags.IntVar(&s.Replicas, "replicas", 0, "`N` replicas of each stream; more than 1 needs a cluster at --nats (default: the store's setting, initially 1)")
		flags.IntVar(&s.Shards, "shards", 1, "`N` streams each for transcripts, inboxes and the session list, so that the servers of a cluster share them; as when the store was made")
		flags.StringSliceVar(&s.Lost, "accept-lost", nil, "`STREAM` that the store has lost: start with an empty one all the same; can be repeated")
	})
	groupFlags(flags, "Retention", func(flags *pflag.FlagSet) { retentionFlags(flags, s) })
	groupFlags(flags, "External NATS server", func(flags *pflag.FlagSet) {
		flags.StringVar(&s.NATS, "nats", "", "`URL` of an external NATS server to use instead of an embedded one")
		natsCA(flags, s)
		flags.StringVar(&s.creds, "creds", "", "NATS credentials `FILE` for --nats (default: broker.login.nk in --data)")
		flags.StringVar(&s.nkey, "nkey", "", "`FILE` with the seed of an nkey for --nats")
		flags.StringVar(&s.context, "context", "", "`NAME` of a nats CLI context with the URL and login")
		flags.BoolVar(&s.SharedKeys, "shared-keys", false, "keys that sign may log in, as before login keys: the broker's, and those of principals without one; for one release")
	})
	groupFlags(flags, "Escalations and deadlines", func(flags *pflag.FlagSet) {
		flags.Var(reads(&s.Rules, server.ReadRules), "escalations", "YAML or JSON `FILE` with the rules on who decides which escalation, and by when (default: any one human who may decide)")
		flags.Var(reads(&s.Notify, notify.Load), "notify", "YAML or JSON `FILE` with the webhooks and mail addresses to notify of escalations")
		flags.Var(milliseconds(&s.Policy.EscalationLow, 24*time.Hour), "escalation-low", "time to answer an escalation of low urgency")
		flags.Var(milliseconds(&s.Policy.EscalationMedium, 4*time.Hour), "escalation-medium", "time to answer an escalation of medium urgency")
		flags.Var(milliseconds(&s.Policy.EscalationHigh, time.Hour), "escalation-high", "time to answer an escalation of high urgency")
		flags.Var(milliseconds(&s.Policy.EscalationCritical, 15*time.Minute), "escalation-critical", "time to answer an escalation of critical urgency")
		flags.Var(milliseconds(&s.Policy.InvitationTimeout, session.DefaultInvitationTimeout), "invitation-timeout", "time to answer an invitation that sets no timeout")
		flags.Var(milliseconds(&s.Policy.ParkedTimeout, session.DefaultParked), "parked-timeout", "time that a turn waits before its principal's standby may take it")
		flags.Var(reads(&s.Standby, readPolicy), "standby", "`POLICY` by which a system agent of each organisation takes the turns that its hosted agents leave waiting: a file as of 'parley negotiator', or default, which judges matches by their assessments (default: only standbys that cards name)")
		flags.BoolVar(&s.OpenRulings, "open-rulings", false, "seal neither what hosted agents escalate nor what people allow: the other side reads it (default: only the own side does)")
		flags.DurationVar(&s.Claim, "claim-timeout", turns.DefaultTimeout, "time that an agent has to answer a turn that it picked up, after which the turn waits again")
	})
	groupFlags(flags, "Limits", func(flags *pflag.FlagSet) {
		limitFlags(flags, &s.Limits)
		flags.IntVar(&s.Connections, "limit-connections", server.DefaultConnections, "connections to the embedded NATS server per principal; -1 is unlimited")
		flags.IntVar(&s.HTTPConnections, "limit-http", server.DefaultHTTPConnections, "HTTP connections per address; -1 is unlimited")
	})
	groupFlags(flags, "Public log", func(flags *pflag.FlagSet) {
		flags.StringVar(&s.LogOrigin, "log-origin", "", "`NAME` of the public log, such as acme.com/log; another name begins another log; all brokers of an installation give the same (default: parley/ and the broker's key)")
		flags.Var(&listed{add: s.addWitness}, "witness", "`KEY URL` of a witness that cosigns the log's checkpoints (C2SP tlog-witness); can be repeated; all brokers of an installation give the same")
		flags.IntVar(&s.Witnesses.Quorum, "witness-quorum", 0, "how many witnesses must cosign a checkpoint before it is published (default: all)")
		flags.DurationVar(&s.Witnesses.Timeout, "witness-timeout", ledger.DefaultWitnessTimeout, "how long a witness may take to answer")
		flags.Var(reads(&s.LogResume, readText), "log-resume", "`FILE` with the newest checkpoint of the log that was published, to let a restored log grow again")
	})
	groupFlags(flags, "Test kits", s.kit.flags)
	groupFlags(flags, "Log", func(flags *pflag.FlagSet) {
		flags.StringVar(&s.logLevel, "log-level", "warn", "`LEVEL`: debug, info, warn or error")
		flags.BoolVar(&s.logJSON, "log-json", false, "log as JSON, and the first and last lines too")
	})
}

func natsCA(flags *pflag.FlagSet, s *serve) {
	flags.StringVar(&s.TLS.NATSCA, "nats-ca", "", "PEM `FILE` with the CA that verifies --nats (default: --tls-ca, else the system's CAs)")
}

// addProxies adds addresses, or networks in CIDR notation.
func (s *serve) addProxies(list string) error {
	for text := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' }) {
		network, err := netip.ParsePrefix(text)
		if addr, single := netip.ParseAddr(text); single == nil {
			network, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return errors.New("want an address or a network, such as 10.0.0.0/8")
		}
		s.HTTPProxies = append(s.HTTPProxies, network)
	}
	return nil
}

// addWitness adds a witness of the public log.
func (s *serve) addWitness(text string) error {
	vkey, url, _ := strings.Cut(strings.TrimSpace(text), " ")
	key, err := inclusion.ParseWitness(vkey)
	if err != nil {
		return fmt.Errorf("want \"KEY URL\": %w", err)
	}
	s.Witnesses.All = append(s.Witnesses.All, ledger.Witness{Key: key, URL: strings.TrimSpace(url)})
	return nil
}

// limitFlags limit what one principal may use.
func limitFlags(flags *pflag.FlagSet, l *limits.Limits) {
	flags.Float64Var(&l.Rate, "limit-rate", limits.DefaultRate, "acts and API calls per second and principal; -1 is unlimited")
	flags.IntVar(&l.Burst, "limit-burst", 0, "acts and API calls at once after a pause (default: a tenth of --limit-rate)")
	flags.IntVar(&l.InFlight, "limit-in-flight", limits.DefaultInFlight, "concurrent acts and API calls per principal; -1 is unlimited")
	flags.IntVar(&l.Sessions, "limit-sessions", limits.DefaultSessions, "open sessions per principal that opened them; -1 is unlimited")
	flags.IntVar(&l.Invitations, "limit-invitations", limits.DefaultInvitations, "unanswered invitations of one organisation to another; -1 is unlimited")
	flags.IntVar(&l.Participants, "limit-participants", limits.DefaultParticipants, "principals per session, and as many delegates; -1 is unlimited")
	flags.IntVar(&l.Bytes, "limit-bytes", performatives.MaxEnvelope, "bytes per envelope, at most the protocol's limit")
	flags.IntVar(&l.SessionBytes, "limit-session-bytes", limits.DefaultSessionBytes, "bytes of a session's transcript; -1 is unlimited")
	flags.IntVar(&l.PrincipalBytes, "limit-principal-bytes", limits.DefaultPrincipalBytes, "bytes that a principal sends per minute; -1 is unlimited")
	flags.IntVar(&l.OrganisationBytes, "limit-organisation-bytes", limits.DefaultOrganisationBytes, "bytes that the principals of an organisation send per minute; -1 is unlimited")
	flags.IntVar(&l.BytesOut, "limit-bytes-out", limits.DefaultBytesOut, "bytes of answers to a principal per minute; -1 is unlimited")
	flags.DurationVar(&l.CPU, "limit-cpu", 0, "work for a principal per minute (default: a minute of every core); -1s is unlimited")
	flags.IntVar(&l.Items, "limit-items", limits.DefaultItems, "copies that a principal's acts put into inboxes per minute; -1 is unlimited")
	flags.IntVar(&l.Buffered, "limit-buffered", limits.DefaultBuffered, "bytes of answers that wait to be sent to a principal; -1 is unlimited")
	flags.IntVar(&l.Streams, "limit-streams", limits.DefaultStreams, "open streams per principal; -1 is unlimited")
	flags.IntVar(&l.Organisation, "limit-organisation", limits.DefaultOrganisation, "times as much of these five for the principals of an organisation together; -1 is unlimited")
	flags.IntVar(&l.Schemas, "limit-schemas", limits.DefaultSchemas, "terms schemas per organisation; -1 is unlimited")
	flags.IntVar(&l.Escalations, "limit-escalations", limits.DefaultEscalations, "escalations per side and session; -1 is unlimited")
}

const defaultArchiveAfter = 24 * time.Hour

// retentionFlags say how long data is kept.
func retentionFlags(flags *pflag.FlagSet, s *serve) {
	flags.DurationVar(&s.Archive.After, "archive-after", defaultArchiveAfter, "move a session to the archive this long after its end; 0 never does. A store is created with an archive or without; the default leaves one without as it is")
	flags.DurationVar(&s.Archive.Closed, "keep-closed", 0, "keep closed sessions in the archive this long; 0 keeps them forever")
	flags.DurationVar(&s.Archive.Failed, "keep-failed", 0, "keep failed sessions in the archive this long; 0 keeps them forever")
	flags.BoolVar(&s.Archive.Erasure, "erasure", false, "let operators erase sessions that are in the archive")
	flags.DurationVar(&s.InboxAge, "keep-inbox", 0, "keep inbox copies this long; session.messages still returns older messages (default: the store's setting, initially 168h)")
}

// minInboxAge exceeds the time in which brokers agree on who received what.
const minInboxAge = time.Hour

// checkRetention checks the retention flags.
func (s *serve) checkRetention(flags *pflag.FlagSet) error {
	var faults []error
	for _, name := range []string{"archive-after", "keep-closed", "keep-failed"} {
		if d, err := flags.GetDuration(name); err != nil || d < 0 {
			faults = append(faults, fault(fmt.Errorf("--%s is a duration of 0 or more", name), name))
		}
	}
	deletes := s.Archive.Deletes()
	if s.Archive.After == 0 && deletes {
		faults = append(faults, fault(errors.New("--keep-closed and --keep-failed need --archive-after: sessions are deleted from the archive only"), "archive-after", "keep-closed", "keep-failed"))
	}
	s.Archive.IfThere = !deletes && !flags.Changed("archive-after")
	if s.InboxAge < minInboxAge && flags.Changed("keep-inbox") {
		faults = append(faults, fault(fmt.Errorf("--keep-inbox is at least %s, so that a principal can be offline for a while", minInboxAge), "keep-inbox"))
	}
	return errors.Join(faults...)
}
