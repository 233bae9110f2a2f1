package inbox

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nkeys"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/inbox/openid"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// cookieName is the cookie that identifies a sign-in. It has no Path attribute: the
// browser uses the page's path, which includes a reverse proxy's prefix.
const cookieName = "parley-inbox"

// signedIn serves a page to a human who is signed in and whose key is still
// registered.
func (i *Inbox) signedIn(page func(http.ResponseWriter, *http.Request, *person)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, err := i.visitor(r)
		if err == nil {
			err = i.Service.As(who.Agent).Metered(r.Context())
		}
		of := r.Header.Get(requestHeader)
		switch {
		case err == nil && of != "" && of != anyPage && of != string(who.Agent):
			i.refuse(w, r, session.Refuse(session.Unauthorized, "another human has signed in with this browser, and nothing was done: reload the page"), http.StatusForbidden)
			return
		case err == nil:
			page(w, r, &who)
			return
		case !errors.Is(err, errSignedOut): // who owes something is signed in all the same
			if r.Method == http.MethodGet && r.URL.Path != "/events" {
				i.trouble(w, r, nil, err)
			} else {
				i.answer(w, r, nil, err)
			}
			return
		}
		if path := strings.Trim(r.URL.Path, "/"); r.Method == http.MethodGet && r.Header.Get(requestHeader) == "" && path != "events" {
			up := strings.Repeat("../", strings.Count(r.URL.Path, "/")-1)
			to := up + "login"
			if path != "" || r.URL.RawQuery != "" {
				to += "?next=" + url.QueryEscape(strings.TrimSuffix(path+"?"+r.URL.RawQuery, "?"))
			}
			redirect(w, to)
			return
		}
		i.refuse(w, r, session.Refuse(session.Unauthorized, "you are not signed in"), http.StatusUnauthorized)
	}
}

var errSignedOut = errors.New("nobody is signed in")

// visitor is the human who is signed in, or errSignedOut; or why that cannot be said now.
func (i *Inbox) visitor(r *http.Request) (person, error) {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return person{}, errSignedOut
	}
	who, ok := i.people.whose(cookie.Value)
	if !ok {
		return person{}, errSignedOut
	}
	card, err := i.card(r.Context(), who.Agent)
	switch {
	case err == nil && i.holds(who, card):
		who.New, who.Away = newDevices(card, who.Key, i.Now()), card.Registry.Away
		return who, nil
	case err == nil, isCode(err, session.UnknownAgent):
		i.people.leave(cookie.Value)
		return person{}, errSignedOut
	}
	return person{}, err // for example because the browser navigated away: stay signed in
}

// card returns a principal's own card.
func (i *Inbox) card(ctx context.Context, a performatives.Agent) (api.Card, error) {
	return ask(ctx, i, a, api.AgentGet, api.AgentRef{Agent: a})
}

// holds reports whether what a person signed in by still counts.
func (i *Inbox) holds(who person, card api.Card) bool {
	if who.Key != "" && !holds(card, who.Key) {
		return false
	}
	provider := i.openID.Load()
	if who.By != (openid.Account{}) {
		return provider != nil && provider.Human(who.By) == who.Agent
	}
	return i.Dev || who.Key != "" && (provider == nil || !provider.Required())
}

func holds(card api.Card, key performatives.Key) bool {
	return card.Key == key || slices.ContainsFunc(card.Registry.Devices, func(d api.Device) bool { return d.Key == key })
}

// newFor is how long a page announces another enrolled browser.
const newFor = 72 * time.Hour

// newDevices returns the devices enrolled recently, after this one.
func newDevices(card api.Card, own performatives.Key, now time.Time) (added []api.Device) {
	all := card.Registry.Devices // in the order of their enrolment
	this := slices.IndexFunc(all, func(d api.Device) bool { return d.Key == own })
	for _, d := range all[this+1:] {
		if now.Sub(stamp(d.Enrolled)) < newFor {
			added = append(added, d)
		}
	}
	return added
}

func (i *Inbox) challenge(w http.ResponseWriter, r *http.Request) {
	i.answer(w, r, map[string]string{"challenge": i.people.challenge(challengeFor, "")}, nil)
}

// A proof shows that a browser holds a key. It signs the JCS bytes of
// {"challenge", "origin", "purpose"}, which cannot be an envelope.
type proof struct {
	Challenge string `json:"challenge"`
	Key       string `json:"key"` // 64 hex digits
	Signature string `json:"signature"`
}

const signIn = "parley inbox sign-in" // a purpose of a proof

var errProof = session.Refuse(session.SignatureInvalid, "the signature is wrong; try again")

// key checks a proof for a purpose, and returns the key in the registry's encoding.
func (i *Inbox) key(p proof, origin, purpose string) (performatives.Key, error) {
	public, err := hex.DecodeString(p.Key)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return "", errProof
	}
	encoded, err := nkeys.Encode(nkeys.PrefixByteUser, public)
	if err != nil {
		return "", errProof
	}
	key := performatives.Key(encoded)
	signed, err := json.Marshal(map[string]string{"challenge": p.Challenge, "origin": origin, "purpose": purpose}, json.Deterministic(true))
	if err != nil {
		return "", err
	}
	if signed, err = performatives.Canonical(signed); err != nil {
		return "", errProof
	}
	if !i.people.answer(p.Challenge, "") || performatives.VerifyBytes(key, signed, p.Signature) != nil {
		return "", errProof
	}
	return key, nil
}

// enrol redeems a code for the browser's key, and signs in, unless only an OpenID provider does.
func (i *Inbox) enrol(w http.ResponseWriter, r *http.Request) {
	var q struct {
		proof
		Code string `json:"code"`
		Name string `json:"name"`
	}
	if !i.read(w, r, &q) {
		return
	}
	key, err := i.key(q.proof, r.Header.Get("Origin"), signIn)
	var who performatives.Agent
	if err == nil {
		who, err = i.Redeem(r.Context(), strings.TrimSpace(q.Code), key, q.Name)
	}
	if err != nil {
		i.fails(w, r, "", err)
		return
	}
	if provider := i.openID.Load(); provider != nil && provider.Required() {
		i.answer(w, r, map[string]any{"agentId": who, "key": key, "openid": true}, nil)
		return
	}
	i.enters(w, r, person{Agent: who, Key: key}, "")
}

// login signs in with an enrolled key, or under --dev as anyone.
func (i *Inbox) login(w http.ResponseWriter, r *http.Request) {
	var q struct {
		proof
		Agent performatives.Agent `json:"agentId"`
	}
	if !i.read(w, r, &q) {
		return
	}
	if _, err := performatives.ParseAgent(string(q.Agent)); err != nil {
		i.fails(w, r, "", session.Refuse(session.MalformedEnvelope, "%s", err))
		return
	}
	if i.Dev && q.Key == "" {
		i.meets(w, r, q.Agent)
		return
	}
	if provider := i.openID.Load(); provider != nil && provider.Required() {
		i.refuse(w, r, session.Refuse(session.Unauthorized, "sign in at %s: a key alone signs nobody in here", provider.Host()), session.Unauthorized.Status())
		return
	}
	key, err := i.key(q.proof, r.Header.Get("Origin"), signIn)
	if err == nil {
		var card api.Card
		if card, err = i.card(r.Context(), q.Agent); err != nil || !q.Agent.IsHuman() || !holds(card, key) {
			err = session.Refuse(session.Unauthorized, "this browser is not enrolled: enrol it with a code from 'parley human enrol'")
		}
	}
	if err != nil {
		i.fails(w, r, q.Agent, err)
		return
	}
	i.enters(w, r, person{Agent: q.Agent, Key: key}, "")
}

// meets signs in a human under --dev, who needs no key.
func (i *Inbox) meets(w http.ResponseWriter, r *http.Request, who performatives.Agent) {
	err := error(session.Refuse(session.Unauthorized, "only humans can sign in: human://{organisation}/{name}"))
	if who.IsHuman() {
		err = i.Meet(r.Context(), who)
	}
	if err != nil {
		i.fails(w, r, "", err)
		return
	}
	i.enters(w, r, person{Agent: who}, "")
}

// enters signs a human in, who goes to a page.
func (i *Inbox) enters(w http.ResponseWriter, r *http.Request, who person, next string) {
	card, err := i.card(r.Context(), who.Agent)
	if err == nil {
		who.Name = card.Name
		http.SetCookie(w, &http.Cookie{
			Name: cookieName, Value: i.people.enter(who), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: i.secure(r),
		})
		i.Log.Info("signed in", zap.String("agent", string(who.Agent)), zap.String("key", string(who.Key)), zap.String("account", oneLine(who.By.Value)))
	}
	i.answer(w, r, map[string]any{"agentId": who.Agent, "name": card.Name, "key": who.Key, "next": next}, err)
}

// fails counts a failed sign-in against its address and, if it named one, its
// principal. The right key signs in however many others fail for the principal.
func (i *Inbox) fails(w http.ResponseWriter, r *http.Request, who performatives.Agent, err error) {
	i.failures.add(i.From(r))
	if _, bad := performatives.ParseAgent(string(who)); bad == nil {
		n := i.failures.add(string(who))
		if n == maxFailures {
			i.Log.Warn("many failed sign-ins as one principal", zap.String("agent", string(who)), zap.Int("failures", n))
		}
		if n > maxFailures {
			err = tooManyFailures("this principal")
		}
	}
	i.answer(w, r, nil, err)
}

func tooManyFailures(what string) error {
	return session.Refuse(session.RateLimited, "too many failed sign-ins of %s; try again in a minute", what)
}

func (i *Inbox) logout(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(cookieName); err == nil {
		i.people.leave(cookie.Value)
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: i.secure(r)})
	i.answer(w, r, map[string]bool{"signedIn": false}, nil)
}

// read decodes a request with a proof, unless its address failed too often.
func (i *Inbox) read(w http.ResponseWriter, r *http.Request, into any) bool {
	if i.failures.tooMany(i.From(r)) {
		i.answer(w, r, nil, tooManyFailures("your address"))
		return false
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		i.tooLarge(w, r)
		return false
	}
	if json.Unmarshal(data, into) != nil {
		i.refuse(w, r, session.Refuse(session.MalformedEnvelope, "the request is not the expected JSON"), http.StatusBadRequest)
		return false
	}
	return true
}

func loopback(hostport string) bool {
	host := hostOf(hostport)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// hostOf returns the host of an address with or without a port.
func hostOf(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	return strings.Trim(host, "[]")
}

// secure reports whether the browser uses TLS, to us or to a reverse proxy.
func (i *Inbox) secure(r *http.Request) bool {
	return i.HTTPS || r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// redirect redirects to a relative URL, which keeps a reverse proxy's prefix.
func redirect(w http.ResponseWriter, relative string) {
	w.Header().Set("Location", relative)
	w.WriteHeader(http.StatusSeeOther)
}
