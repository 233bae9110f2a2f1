package notify_test

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/inbox/notify"
	"github.com/parley-asp/parley/test/testkit"
)

const password = "correct horse"

// strict is a mail server that accepts mail after a login over TLS only.
type strict struct{ *world }

func (s strict) NewSession(*smtp.Conn) (smtp.Session, error) {
	return &unknown{letter: letter{w: s.world}}, nil
}

type unknown struct {
	letter
	known bool
}

func (*unknown) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *unknown) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, secret string) error {
		s.w.passwords <- secret
		if user != "parley" || secret != password {
			return errors.New("wrong password")
		}
		s.known = true
		return nil
	}), nil
}

func (s *unknown) Mail(from string, o *smtp.MailOptions) error {
	if !s.known {
		return smtp.ErrAuthRequired
	}
	return s.letter.Mail(from, o)
}

// strict starts a mail server that needs a login over TLS, with or without a certificate.
func (w *world) strict(by *testkit.Authority, implicit bool) {
	w.Helper()
	w.passwords = make(chan string, 64)
	server := smtp.NewServer(strict{w})
	server.Domain = "127.0.0.1"
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(w, err)
	w.smtp = listener
	if by != nil {
		pair, err := tls.LoadX509KeyPair(by.Issue("mail"))
		testkit.Must(w, err)
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	} else {
		server.AllowInsecureAuth = true // it asks for the password in the clear
	}
	if implicit {
		listener = tls.NewListener(listener, server.TLSConfig)
	}
	go server.Serve(listener) //nolint:errcheck // it ends with the test
	w.Cleanup(func() { server.Close() })
}

const byTLS = `
links: https://parley.acme.example/inbox
smtp: {server: SMTP, from: parley@acme.example, user: parley, passwordFile: password, tls: HOW, caFile: ca.pem}
organisations:
  acme.example: {mail: {people: {human://acme.example/alice: alice@acme.example}}}
`

// TestMailOverTLS checks that mail and password are sent only over TLS, to a server with a
// trusted certificate.
func TestMailOverTLS(t *testing.T) {
	t.Parallel()
	ours, others := testkit.NewAuthority(t), testkit.NewAuthority(t)
	for _, c := range []struct {
		name, how string
		server    *testkit.Authority
		implicit  bool
		fails     string // "" is that the mail goes out
	}{
		{name: "STARTTLS", how: "starttls", server: ours},
		{name: "TLS from the first byte", how: "tls", server: ours, implicit: true},
		{name: "STARTTLS that is not there", how: "starttls", fails: "STARTTLS"},
		{name: "STARTTLS with another's certificate", how: "starttls", server: others, fails: "unknown authority"},
		{name: "TLS with another's certificate", how: "tls", server: others, implicit: true, fails: "unknown authority"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := listens(t)
			w.strict(c.server, c.implicit)
			w.Broker = testkit.StartBroker(t, testkit.Options{})
			ca, err := os.ReadFile(ours.File)
			testkit.Must(t, err)
			for name, content := range map[string][]byte{"ca.pem": ca, "password": []byte(password + "\n")} {
				testkit.Must(t, os.WriteFile(filepath.Join(w.dir, name), content, 0o600))
			}
			warned := make(chan string, 64)
			w.startsWith(w.config(strings.Replace(byTLS, "HOW", c.how, 1)), func(o *notify.Options) {
				o.Delays = []time.Duration{time.Minute}
				o.Log = zap.New(warnings{zapcore.NewNopCore(), warned})
			})
			w.happens(escalation.Action{Kind: escalation.Opened})
			if c.fails == "" {
				if mail := next(w, w.mails); !strings.HasPrefix(mail, "RCPT alice@acme.example\r\n") || !strings.Contains(mail, "needs a decision") {
					t.Errorf("the mail is %s", mail)
				}
				if got := next(w, w.passwords); got != password {
					t.Errorf("the password is %q", got)
				}
				return
			}
			if why := next(w, warned); !strings.Contains(why, c.fails) {
				t.Errorf("it fails with %q, want %q", why, c.fails)
			}
			if len(w.mails)+len(w.passwords) > 0 {
				t.Errorf("%d mails and %d passwords went out", len(w.mails), len(w.passwords))
			}
		})
	}
}

// warnings collects the errors of a log.
type warnings struct {
	zapcore.Core
	to chan string
}

func (w warnings) Enabled(zapcore.Level) bool        { return true }
func (w warnings) With([]zapcore.Field) zapcore.Core { return w }
func (w warnings) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return c.AddCore(e, w)
}

func (w warnings) Write(e zapcore.Entry, fields []zapcore.Field) error {
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && e.Level >= zapcore.WarnLevel {
			w.to <- err.Error()
		}
	}
	return nil
}
