package embedded

import (
	"errors"
	"fmt"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/text"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/server/login"
)

// What the system user of Config may do: find a user's connections on all servers, have a
// server close one, and read the replies.
const (
	FindConnections = "$SYS.REQ.SERVER.PING.CONNZ"
	CloseConnection = "$SYS.REQ.SERVER.%s.KICK" // with the server's id
	SystemInbox     = "_INBOX.parley"           // prefix of its reply inboxes
)

// Config returns a nats-server.conf that sets up an external server like the embedded one of
// [Start]: the same accounts, imports and limits, and logins that the broker answers. It has
// public keys only.
func Config(k Keys, shards int) (string, error) {
	if err := k.check(); err != nil {
		return "", fmt.Errorf("embedded: %w", err)
	}
	if !nkeys.IsValidPublicUserKey(k.System) || k.System == k.Broker || k.System == k.Callout {
		return "", errors.New("embedded: the system user's key is not a user nkey of its own")
	}
	var out strings.Builder
	err := config.Execute(&out, map[string]any{
		"Keys": k, "Access": production(shards), "Exports": exports(production(shards)), "Wakeups": wakeups, "Timeout": loginTimeout.Seconds(), "Subscriptions": maxSubscriptions, "Consumers": maxConsumers,
		"JetStream": jetStream(), "Submits": api.AllSubmits, "Routes": api.RouteMapping,
		"Responses": responses, "SYS": login.SystemAccount, "ASP": login.BrokerAccount, "AUTH": login.CalloutAccount,
		"Find": FindConnections, "Close": fmt.Sprintf(CloseConnection, "*"), "Inbox": SystemInbox + ".>",
	})
	return out.String(), err
}

// jetStream is the part that is the same in every configuration.
func jetStream() string {
	return fmt.Sprintf(`max_payload: %d
max_pending: %d
no_fast_producer_stall: true # nobody waits for who does not read
jetstream {
  store_dir: "./nats-data" # adjust
  # max_file_store: 100GB # else three quarters of what is free when the server starts
  # What is accepted has been fsynced. In a cluster with --replicas 3 a time such
  # as 1s is enough: three servers would have to lose power at once.
  sync_interval: always
  limits {
    batch { max_inflight_per_stream: %d, max_inflight_total: %[3]d }
  }
}
`, MaxPayload, maxPending, maxBatches)
}

// responses are the names of response types in a configuration.
var responses = map[server.ServiceRespType]string{server.Singleton: "Singleton", server.Streamed: "Stream", server.Chunked: "Chunked"}

var config = template.Must(template.New("nats-server.conf").Parse(`# For a NATS server that parley uses: nats-server 2.12 or later, on its own
#     nats-server -c FILE
# or beside a configuration of yours that says:  include FILE
# The seeds of these public keys stay with the broker. Every server of a cluster
# needs this same configuration.

{{.JetStream}}
system_account: {{.SYS}}

accounts {
  # Finds and closes the connections of removed principals. Without it they stay
  # open until the clients close them.
  {{.SYS}} {
    users: [
      { nkey: {{.Keys.System}}, permissions: {
        publish: { allow: ["{{.Find}}", "{{.Close}}"] }, subscribe: { allow: ["{{.Inbox}}"] } } }
    ]
  }

  # JetStream and the broker. Do not add other users here: they could delete the
  # transcripts.
  {{.ASP}} {
    jetstream: { max_consumers: {{.Consumers}} } # every principal has one
    users: [{ nkey: {{.Keys.Broker}} }]
    exports: [
{{- range .Exports}}
      { {{if .Stream}}stream: "{{.Subject}}"{{else}}service: "{{.Subject}}", response_type: {{index $.Responses .Answers}}{{end}}, accounts: [{{range $n, $to := .Accounts}}{{if $n}}, {{end}}{{$to}}{{end}}] }
{{- end}}
    ]
    # Wakes principals by requests to their reply inboxes.
    imports: [{ service: { account: {{.Wakeups.Account}}, subject: "{{.Wakeups.Subject}}" }, to: "{{.Wakeups.Local}}" }]
    # Routes acts to the partition owner of their session if there are several
    # brokers. It concerns the brokers only.
    mappings: { "{{.Submits}}": "{{.Routes}}" }
  }
{{range .Access}}
  {{.Account}} {
    limits: { max_subscriptions: {{$.Subscriptions}} } # of each connection
{{- if eq .Account $.Wakeups.Account}}
    exports: [{ service: "{{$.Wakeups.Subject}}", accounts: [{{$.ASP}}] }]
{{- end}}
    imports: [
{{- range .Services}}
      { service: { account: {{$.ASP}}, subject: "{{.Subject}}" } }
{{- end}}
{{- range .Streams}}
      { stream: { account: {{$.ASP}}, subject: "{{.}}" } }
{{- end}}
    ]
  }
{{end}}
  {{.AUTH}} {
    users: [{ nkey: {{.Keys.Callout}} }]
  }
}

# The broker decides about all other logins, because it knows who is registered.
authorization {
  timeout: {{.Timeout}}
  auth_callout {
    issuer: {{.Keys.Issuer}}
    account: {{.AUTH}}
    auth_users: [{{.Keys.Broker}}, {{.Keys.Callout}}, {{.Keys.System}}]
  }
}
`))
