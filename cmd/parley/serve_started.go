package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/natslogin"
	"github.com/parley-asp/parley/server"
)

// A fact is what is said of a broker once it serves: with --log-json a field, else a line, which goes on with more.
type fact struct{ name, value, more string }

// started says that a broker serves.
func (s *serve) started(cmd *cobra.Command, n *server.Server) {
	facts := s.facts(n)
	if s.logJSON {
		fields := []zap.Field{zap.String("version", api.Version), zap.Bool("dev", s.Dev)}
		for _, f := range facts {
			fields = append(fields, zap.String(strings.ToLower(f.name), f.value))
		}
		notices(cmd).Info("parley is serving", fields...)
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "parley %s is serving.\n", api.Version)
	for _, f := range facts {
		fmt.Fprintf(&b, "  %-9s %s\n", f.name, f.value+f.more)
	}
	if s.Dev {
		b.WriteString(devWarning)
	}
	note(cmd, strings.TrimSuffix(b.String(), "\n"))
}

func (s *serve) facts(n *server.Server) []fact {
	where := "embedded"
	if s.NATS != "" {
		where = "external"
	}
	data, err := filepath.Abs(s.Data)
	if err != nil {
		data = s.Data
	}
	host, _ := os.Hostname() // it serves without a name, too
	facts := []fact{
		{"NATS", natslogin.WithoutPassword(n.URL), fmt.Sprintf(" (%s server, version %s)", where, n.Broker.Options.Conn.ConnectedServerVersion())},
		{"WebSocket", n.WebsocketURL, ""},
	}
	if n.HTTPAddr != "" {
		at := s.scheme() + "://" + n.HTTPAddr
		facts = append(facts, fact{"HTTP", at, ""}, fact{"inbox", at + "/inbox/", "  where humans decide"})
	}
	facts = append(facts, fact{"MACP", n.MACPAddr, ""})
	if n.MonitorAddr != "" {
		facts = append(facts, fact{"monitor", "http://" + n.MonitorAddr, ""})
	}
	facts = append(facts,
		fact{"broker", n.ID, "  in the log and in 'nats micro info asp'"}, fact{"host", host, ""}, fact{"data", data, ""},
		fact{"key", string(n.Broker.Command.Key()), "  verifies receipts and transcripts"})
	if s.TLS.Cert != "" && s.TLS.CA != "" {
		facts = append(facts, fact{"clients", "each needs a certificate of " + s.TLS.CA, ""})
	}
	if s.NATS == "" {
		facts = append(facts, fact{"sync", (*fsync)(&s.Sync).meaning(), ""})
	}
	switch {
	case s.Dev:
	case !n.ServesLogins():
		facts = append(facts, fact{"logins", "as the external server is configured", ""})
	default:
		facts = append(facts, fact{"operator", filepath.Join(data, server.OperatorSeed), " logs in as operator"})
	}
	return slices.DeleteFunc(facts, func(f fact) bool { return f.value == "" })
}

// notices logs what is said at every level of the log.
func notices(cmd *cobra.Command) *zap.Logger { return logTo(cmd.ErrOrStderr(), zap.InfoLevel, true) }

// note says what is no line of the log: with --log-json it is one, with fields.
func (s *serve) note(cmd *cobra.Command, text string, fields ...zap.Field) {
	if s.logJSON {
		notices(cmd).Info(text, fields...)
		return
	}
	note(cmd, text)
}

const devWarning = `
  ******************************************************************
  **  --dev: THERE IS NO LOGIN. Any program on this machine can    **
  **  act as any agent or human, and unsigned acts are accepted.   **
  **  Use it to try things out, never for a real negotiation.      **
  ******************************************************************
`
