package embedded

import (
	"errors"
	"fmt"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/text"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/server/login"
)

// Nsc returns a shell script of nsc commands that set up an external server in operator mode
// like the embedded one of [Start]: the same accounts, signed by an operator of nsc, and logins
// that the broker answers. systemJWT is the file for the JWT of the broker's user in the system
// account, creds the file with the broker's credentials. The script has no secrets.
func Nsc(k Keys, authority *login.Authority, systemJWT, creds string, shards int) (string, error) {
	if err := k.check(); err != nil {
		return "", fmt.Errorf("embedded: %w", err)
	}
	if !nkeys.IsValidPublicUserKey(k.System) || k.System == k.Broker || k.System == k.Callout {
		return "", errors.New("embedded: the system user's key is not a user nkey of its own")
	}
	sentinel, err := authority.Sentinel()
	if err != nil {
		return "", err
	}
	type account struct {
		Name, JWT string
		What      []string
	}
	var accounts []account
	for _, name := range login.Accounts {
		if name == login.SystemAccount {
			continue // the operator has its own
		}
		text, err := accountJWT(authority, name, k.Callout, production(shards), false)
		if err != nil {
			return "", err
		}
		accounts = append(accounts, account{name, text, describe(name, production(shards))})
	}
	var out strings.Builder
	err = nsc.Execute(&out, map[string]any{
		"Keys": k, "Accounts": accounts, "Sentinel": sentinel, "SystemJWT": quote(systemJWT), "Creds": quote(creds),
		"Timeout": loginTimeout.Seconds(), "JetStream": jetStream(), "SYS": login.SystemAccount,
		"Find": FindConnections, "Close": fmt.Sprintf(CloseConnection, "*"), "Inbox": SystemInbox + ".>",
	})
	return out.String(), err
}

// quote makes a text one word of a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// describe explains the JWT of an account.
func describe(name string, all []access) []string {
	switch name {
	case login.BrokerAccount:
		lines := []string{"JetStream and the broker, nobody else. Each account needs an activation", "signed by this one for what it exports:"}
		for _, may := range all {
			lines = append(lines, may.lines("to "+may.Account)...)
		}
		lines = append(lines, "It wakes principals by requests:", "  service "+wakeups.Subject+" of "+wakeups.Account+" as "+wakeups.Local)
		return append(lines, "If there are several brokers, it routes acts to the partition owner of", "their session:", "  mapping "+api.AllSubmits, "       to "+api.RouteMapping)
	case login.CalloutAccount:
		return []string{"The login service, to which external authorization sends all other logins."}
	default:
		for _, may := range all {
			if may.Account == name {
				return append([]string{"It imports from " + login.BrokerAccount + ":"}, may.lines("")...)
			}
		}
		return nil
	}
}

func (a access) lines(to string) (all []string) {
	add := func(kind, subject string) { all = append(all, strings.TrimRight("  "+kind+" "+subject+" "+to, " ")) }
	for _, s := range a.Services {
		add("service", s.Subject)
	}
	for _, subject := range a.Streams {
		add("stream ", subject)
	}
	return all
}

var nsc = template.Must(template.New("nsc").Parse(`# For a NATS server in operator mode that parley uses: nats-server 2.12 or later,
# nsc 2.8 or later. Run this with sh in an empty folder. It has no secrets: the
# seeds of these public keys stay with the broker.
set -e

# The operator, with its system account {{.SYS}}. Omit this if nsc already has one
# (nsc env).
nsc add operator --name parley --sys

# parley's accounts. Each account signs its own JWT, and the operator signs it
# again, with a warning that it has no limits. Only parley has the accounts' keys,
# so nobody else can add users.
{{range .Accounts}}
# {{.Name}}
{{- range .What}}
#   {{.}}
{{- end}}
cat > {{.Name}}.jwt <<'END'
{{.JWT}}
END
nsc import account --file {{.Name}}.jwt --overwrite
{{end}}
# Finds and closes the connections of removed principals. Without it they stay open
# until the clients close them.
nsc add user --account {{.SYS}} --name parley --public-key {{.Keys.System}} --allow-pub '{{.Find}},{{.Close}}' --allow-sub '{{.Inbox}}'
nsc describe user --account {{.SYS}} --name parley --raw --output-file {{.SystemJWT}}

# The server's configuration. If you have a resolver for accounts, nsc push them
# there instead of generating one here.
nsc generate config --mem-resolver --sys-account {{.SYS}} --config-file resolver.conf
cat > parley.conf <<'END'
include ./resolver.conf

# A login with a bare nkey counts as one with this JWT, which grants nothing, so the
# server asks the broker, as it does for .creds files.
default_sentinel: "{{.Sentinel}}"
authorization { timeout: {{.Timeout}} }

{{.JetStream -}}
END

# Then on every server:
#   nats-server -c parley.conf
# and for each broker, whose data directory has the same *.nk and system.jwt:
#   parley serve --data DIR --nats nats://HOST:4222 --creds {{.Creds}}
`))
