package embedded

import (
	"errors"
	"fmt"
	"strings"
	"text/template"

	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/login"
)

// Nsc is a shell script of nsc commands that make a server elsewhere, in operator mode, what
// [Start] makes the embedded one: the same accounts, signed by an operator of nsc's, and logins
// that the broker answers. systemJWT is the file where the broker finds the user that it is in
// the operator's system account, creds the one with its own credentials. Nothing in the script
// is secret.
func Nsc(k Keys, authority *login.Authority, systemJWT, creds string) (string, error) {
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
		text, err := accountJWT(authority, name, k.Callout, false)
		if err != nil {
			return "", err
		}
		accounts = append(accounts, account{name, text, describe(name)})
	}
	var out strings.Builder
	err = nsc.Execute(&out, map[string]any{
		"Keys": k, "Accounts": accounts, "Sentinel": sentinel, "SystemJWT": quote(systemJWT), "Creds": quote(creds),
		"Timeout": loginTimeout.Seconds(), "JetStream": jetStream(), "SYS": login.SystemAccount,
		"Find": FindConnections, "Close": fmt.Sprintf(CloseConnection, "*"), "Inbox": SystemInbox + ".>",
	})
	return out.String(), err
}

// quote makes one word of a shell's of a text.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// describe says in words what the JWT of an account does.
func describe(name string) []string {
	switch name {
	case login.BrokerAccount:
		lines := []string{"JetStream and the broker, nobody else. It exports, to be activated by", "itself for each account:"}
		for _, may := range production {
			lines = append(lines, may.lines("to "+may.account)...)
		}
		return append(lines, "Where there are several brokers, it brings an act to the one that its", "session is at home with:", "  mapping "+api.AllSubmits, "       to "+api.HomeMapping)
	case login.CalloutAccount:
		return []string{"The login service, which external authorization asks about everybody else."}
	default:
		for _, may := range production {
			if may.account == name {
				return append([]string{"It imports from " + login.BrokerAccount + ":"}, may.lines("")...)
			}
		}
		return nil
	}
}

func (a access) lines(to string) (all []string) {
	add := func(kind, subject string) { all = append(all, strings.TrimRight("  "+kind+" "+subject+" "+to, " ")) }
	for _, s := range a.services {
		add("service", s.subject)
	}
	for _, subject := range a.streams {
		add("stream ", subject)
	}
	return all
}

var nsc = template.Must(template.New("nsc").Parse(`# For a NATS server in operator mode that parley uses: nats-server 2.12 or later,
# nsc 2.8 or later. Run this in an empty folder, with sh. Nothing in it is secret;
# the seeds that belong to these public keys stay with the broker.
set -e

# The operator, with its system account {{.SYS}}. Leave this out if you have one that
# nsc uses already (nsc env).
nsc add operator --name parley --sys

# parley's accounts. Each JWT is signed by the account itself; the operator signs
# it anew, and warns of the limits in them, which are none. Nobody but parley has
# the accounts' keys, so nobody else adds users to them.
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
# Finds and closes the connections of whoever was removed. Without it they end only
# by themselves.
nsc add user --account {{.SYS}} --name parley --public-key {{.Keys.System}} --allow-pub '{{.Find}},{{.Close}}' --allow-sub '{{.Inbox}}'
nsc describe user --account {{.SYS}} --name parley --raw --output-file {{.SystemJWT}}

# The server's configuration. Where a resolver of yours holds the accounts, nsc push
# them there instead of generating one here.
nsc generate config --mem-resolver --sys-account {{.SYS}} --config-file resolver.conf
cat > parley.conf <<'END'
include ./resolver.conf

# Whoever comes with a bare nkey is taken to have come with this JWT, which may do
# nothing: so the server asks the broker, as it does about .creds files.
default_sentinel: "{{.Sentinel}}"
authorization { timeout: {{.Timeout}} }

{{.JetStream -}}
END

# Then, on every server:
#   nats-server -c parley.conf
# and for each broker, whose data directory has the same *.nk and system.jwt:
#   parley serve --data DIR --nats nats://HOST:4222 --creds {{.Creds}}
`))
