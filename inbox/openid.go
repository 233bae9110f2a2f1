package inbox

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/inbox/openid"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// visitCookie binds a visit to the OpenID provider to a browser. It holds random bytes, and the page to go to.
const visitCookie = "parley-openid"

// The bounds of a visit: its time, and the bytes of what the browser sends.
const (
	visitFor = 10 * time.Minute
	maxNext  = 1 << 10
	maxCode  = 4 << 10
)

// SetOpenID changes the provider. Sign-ins that it does not vouch for end.
func (i *Inbox) SetOpenID(p *openid.Provider) { i.openID.Store(p) }

// toProvider leads a browser to the provider.
func (i *Inbox) toProvider(w http.ResponseWriter, r *http.Request) {
	provider := i.openID.Load()
	if provider == nil {
		http.NotFound(w, r)
		return
	}
	if i.failures.tooMany(i.From(r)) {
		i.trouble(w, r, nil, tooManyFailures("your address"))
		return
	}
	next := r.URL.Query().Get("next")
	if len(next) > maxNext {
		next = ""
	}
	cookie := base64.RawURLEncoding.EncodeToString(random(32)) + "." + base64.RawURLEncoding.EncodeToString([]byte(next))
	state := i.people.challenge(visitFor, cookie)
	to, err := provider.AuthCodeURL(r.Context(), state, i.people.secretOf(state, "nonce"), i.people.secretOf(state, "verifier"))
	if err != nil {
		i.trouble(w, r, nil, i.notSignedIn(provider, err))
		return
	}
	http.SetCookie(w, i.visit(r, cookie, int(visitFor.Seconds())))
	redirect(w, to)
}

// visit is the cookie of a visit. The page at the redirect URI sends it, and not the provider's redirect, so it
// need not be SameSite=Lax.
func (i *Inbox) visit(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{Name: visitCookie, Value: value, MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: i.secure(r)}
}

// callback is the page at the redirect URI. It changes nothing: its script posts what is in its URL.
func (i *Inbox) callback(w http.ResponseWriter, r *http.Request) {
	if i.openID.Load() == nil {
		http.NotFound(w, r)
		return
	}
	r = r.Clone(r.Context())
	r.URL.RawQuery = "" // the code goes into no page
	i.loginPage(w, r)
}

// fromProvider signs in a human with what the provider gave to this browser: to read, and to act if the browser
// also proves a key of that human.
func (i *Inbox) fromProvider(w http.ResponseWriter, r *http.Request) {
	provider := i.openID.Load()
	if provider == nil {
		http.NotFound(w, r)
		return
	}
	var q struct {
		proof
		Code  string `json:"code"`
		State string `json:"state"`
		Error string `json:"error"`
	}
	if !i.read(w, r, &q) {
		return
	}
	cookie, err := r.Cookie(visitCookie)
	if err != nil || !i.people.answer(q.State, cookie.Value) {
		i.fails(w, r, "", session.Refuse(session.Unauthorized, "this sign-in did not begin in this browser, or took longer than 10 minutes; begin again"))
		return
	}
	http.SetCookie(w, i.visit(r, "", -1))
	if q.Error != "" || q.Code == "" || len(q.Code) > maxCode {
		i.fails(w, r, "", session.Refuse(session.Unauthorized, "%s signed nobody in%s", provider.Host(), declined[q.Error]))
		return
	}
	account, err := provider.Exchange(r.Context(), q.Code, i.people.secretOf(q.State, "nonce"), i.people.secretOf(q.State, "verifier"))
	who := person{Agent: provider.Human(account), By: account}
	if err == nil && who.Agent == "" {
		i.Log.Info("an account of the OpenID provider is nobody here", zap.String("issuer", provider.Host()), zap.String("account", oneLine(account.Value)))
		err = session.Refuse(session.Unauthorized, "%s says that you are %s, and nobody here is; ask an operator", provider.Host(), oneLine(account.Value))
	}
	if err == nil {
		who.Key, err = i.ownKey(r, who.Agent, q.proof)
	}
	switch {
	case errors.Is(err, openid.ErrUnavailable):
		i.answer(w, r, nil, i.notSignedIn(provider, err))
		return
	case err != nil:
		i.fails(w, r, "", i.notSignedIn(provider, err))
		return
	}
	_, next, _ := strings.Cut(cookie.Value, ".")
	path, err := base64.RawURLEncoding.DecodeString(next)
	if err != nil {
		path = nil
	}
	i.enters(w, r, who, string(path))
}

// ownKey is the key that a browser proves, if it is one of a human's; "" if it has none of theirs.
func (i *Inbox) ownKey(r *http.Request, who performatives.Agent, p proof) (performatives.Key, error) {
	card, err := i.card(r.Context(), who)
	if isCode(err, session.UnknownAgent) {
		return "", session.Refuse(session.Unauthorized, "%s is not registered here; ask an operator", who)
	}
	if err != nil || p.Key == "" {
		return "", err
	}
	key, err := i.key(p, r.Header.Get("Origin"), signIn)
	if err != nil || !holds(card, key) {
		return "", err
	}
	return key, nil
}

// acts serves what acts to a human whose browser has shown an enrolled key.
func (i *Inbox) acts(act func(http.ResponseWriter, *http.Request, *person)) func(http.ResponseWriter, *http.Request, *person) {
	return func(w http.ResponseWriter, r *http.Request, who *person) {
		if who.Key == "" && !i.Dev {
			i.answer(w, r, nil, session.Refuse(session.Unauthorized, "this browser can read, and not act: it has shown no key of yours. Enrol it with a code from an operator, or sign in again"))
			return
		}
		act(w, r, who)
	}
}

// declined words the errors of RFC 6749, section 4.1.2.1, that a person can do something about. The provider's own
// words are not shown: whoever makes a link chooses them.
var declined = map[string]string{
	"access_denied":           ": it denied the access",
	"temporarily_unavailable": ": it is not available now; try again",
	"server_error":            ": it has an error; try again",
	"login_required":          ": it wants a new login; begin again",
	"interaction_required":    ": it wants an answer of yours; begin again",
	"consent_required":        ": it wants your consent; begin again",
}

// notSignedIn words why the provider signed nobody in, and tells the operator more.
func (i *Inbox) notSignedIn(provider *openid.Provider, err error) error {
	if refused(err) {
		return err
	}
	i.Log.Warn("no sign-in by the OpenID provider", zap.String("issuer", provider.Host()), zap.Error(err))
	switch {
	case errors.Is(err, openid.ErrRefused):
		return session.Refuse(session.Unauthorized, "%s did not accept the code: it works once, and for a short time; begin again", provider.Host())
	case errors.Is(err, openid.ErrToken):
		return session.Refuse(session.Unauthorized, "the answer of %s cannot be accepted; begin again, or ask an operator", provider.Host())
	case errors.Is(err, openid.ErrUnverified):
		return session.Refuse(session.Unauthorized, "%s has not verified your e-mail address; verify it there, and begin again", provider.Host())
	}
	return session.Refuse(session.Unavailable, "signing in at %s is not possible now: it does not answer as it should; try again", provider.Host())
}
