package wakeups

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/webhook"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A row is one wakeup, as it is stored.
type row struct {
	Agent   performatives.Agent     `json:"agentId"`
	Session performatives.SessionID `json:"sessionId,omitzero"`
	Turns   bool                    `json:"turns,omitzero"`
	// Sealed is the target, bound to the row's key.
	Sealed []byte `json:"sealed,omitzero"`
	// URL and Secret are the target of a row that was stored before rows were sealed.
	URL    string `json:"url,omitzero"`
	Secret []byte `json:"secret,omitzero"`
	// Consumer has what is to be told. It stays while the row is changed, so that the new target is
	// told what the old one did not answer, and goes with the row.
	Consumer string `json:"consumer"`

	to       target // opened
	revision uint64 // in the bucket
	stop     func() // of its consumer, here
}

// A target is who is called: a URL, or a subject of NATS.
type target struct {
	URL     string `json:"url,omitzero"`
	Subject string `json:"subject,omitzero"`
	Secret  []byte `json:"secret"`         // signs
	Token   string `json:"token,omitzero"` // goes with each call to the URL
}

// key is that of a row: of a principal in a session, or in all.
func key(a performatives.Agent, id performatives.SessionID) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s", a, id))
	return hex.EncodeToString(sum[:16])
}

// purpose separates the sealing key from all else that is derived from the secret.
const purpose = "parley wakeups v1"

var errSealed = errors.New("a wakeup does not open: it was sealed by another installation, or changed")

// close seals a target into its row.
func (w *Wakeups) close(at string, r *row, to target) error {
	if w.seal == nil {
		return session.Refuse(session.Unauthorized, "this broker has no secret to seal wakeups with")
	}
	plain, err := json.Marshal(to)
	if err != nil {
		return err
	}
	r.Sealed = w.seal.Seal(nil, nil, plain, []byte(at))
	return nil
}

// open opens the target of a row.
func (w *Wakeups) open(at string, r *row) error {
	if r.Sealed == nil {
		r.to = target{URL: r.URL, Secret: r.Secret}
		return nil
	}
	if w.seal == nil {
		return errSealed
	}
	plain, err := w.seal.Open(nil, nil, r.Sealed, []byte(at))
	if err != nil {
		return errSealed
	}
	return json.Unmarshal(plain, &r.to)
}

// address is whom the bounds of calls count: a server, or the principal itself.
func (t target) address(a performatives.Agent) (*url.URL, error) {
	if t.Subject != "" {
		return &url.URL{Scheme: "nats", Host: a.Token()}, nil
	}
	return url.Parse(t.URL)
}

const (
	maxURL     = 2048
	maxSubject = 256
	maxToken   = 1024
)

// bearer is a token as a header has it (RFC 6750).
var bearer = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// target is what a request names, if the broker may call it.
func (w *Wakeups) target(a performatives.Agent, q api.SetWakeup) (t target, err error) {
	t = target{URL: q.URL, Subject: q.Subject, Token: q.Token, Secret: make([]byte, 32)}
	rand.Read(t.Secret)
	secret, path := q.Secret, "/secret"
	if secret == "" && webhook.IsSecret(q.Token) { // no secret is ever sent
		secret, path, t.Token = q.Token, "/token", ""
	}
	switch {
	case q.URL != "" && q.Subject != "":
		return t, malformed("/subject", "give a url or a subject, not both")
	case q.Subject != "":
		if err := below(a, q.Subject); err != nil {
			return t, malformed("/subject", err.Error())
		}
		if t.Token != "" {
			return t, malformed("/token", "goes with calls to a url; who listens on NATS checks the signature")
		}
	case len(q.URL) > maxURL:
		return t, malformed("/url", fmt.Sprintf("has at most %d bytes", maxURL))
	default:
		if err := w.o.Check(q.URL); err != nil {
			return t, malformed("/url", err.Error())
		}
	}
	if t.Token != "" && (len(t.Token) > maxToken || !bearer.MatchString(t.Token)) {
		return t, malformed("/token", "want at most 1024 characters of A-Z, a-z, 0-9, - . _ ~ + / and = at the end")
	}
	if secret != "" {
		if t.Secret, err = webhook.Secret(secret); err != nil {
			return t, malformed(path, err.Error())
		}
	}
	return t, nil
}

// below refuses a subject to which its principal may not listen: a broker never publishes where its
// caller could not.
func below(a performatives.Agent, subject string) error {
	prefix := api.Inboxes + a.Token() + "."
	rest, is := strings.CutPrefix(subject, prefix)
	switch {
	case !is:
		return errors.New("want a subject below your own reply prefix, which ends in your own token")
	case len(subject) > maxSubject:
		return fmt.Errorf("has at most %d bytes", maxSubject)
	}
	for token := range strings.SplitSeq(rest, ".") {
		if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' || r == '*' || r == '>' }) {
			return errors.New("want tokens of visible ASCII between dots, without wildcards")
		}
	}
	return nil
}

func malformed(path, why string) error {
	return session.Refuse(session.MalformedEnvelope, "%s: %s", path, why).With(map[string]string{"path": path})
}
