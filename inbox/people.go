package inbox

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"sync"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/inbox/openid"
	"github.com/parley-asp/parley/performatives"
)

// The idle time after which a sign-in expires, or the whole time of one by an OpenID provider, which may no
// longer know the person; and the lifetime of a challenge.
const (
	signedInFor  = 12 * time.Hour
	challengeFor = 2 * time.Minute
)

// A person is a human who is signed in.
type person struct {
	Agent performatives.Agent
	Name  string
	Key   performatives.Key // in the browser; "" in --dev, and for one that only an OpenID provider signed in
	By    openid.Account    // of an OpenID provider; zero for a sign-in by the key alone
	New   []api.Device      // other browsers enrolled recently
	Away  *api.Away         // from a time on, until it is over
	ends  time.Time
}

// people holds the sign-ins by cookie, in memory. After a restart, a browser with a key
// signs in again by itself.
type people struct {
	now    func() time.Time
	secret []byte // of this process, for challenges
	visits []byte // of this process, for visits to an OpenID provider

	mu       sync.Mutex
	byCookie map[string]*person
	answered map[string]time.Time // used challenges, until they expire
}

func newPeople(now func() time.Time) *people {
	return &people{now: now, secret: random(32), visits: random(32), byCookie: map[string]*person{}, answered: map[string]time.Time{}}
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

// enter signs a person in and returns the cookie.
func (p *people) enter(who person) string {
	cookie := base64.RawURLEncoding.EncodeToString(random(32))
	who.ends = p.now().Add(signedInFor)
	p.mu.Lock()
	defer p.mu.Unlock()
	for c, old := range p.byCookie {
		if p.now().After(old.ends) {
			delete(p.byCookie, c)
		}
	}
	p.byCookie[cookie] = &who
	return cookie
}

// whose returns the person of a cookie, and extends a sign-in by the key.
func (p *people) whose(cookie string) (person, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	who, ok := p.byCookie[cookie]
	if !ok || p.now().After(who.ends) {
		return person{}, false
	}
	if who.By == (openid.Account{}) {
		who.ends = p.now().Add(signedInFor)
	}
	return *who, true
}

func (p *people) leave(cookie string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byCookie, cookie)
}

// challenge returns what can be answered once and within a time: what a browser signs to sign in, or, for a
// browser with a cookie, the state of its visit to an OpenID provider. It carries its expiry and a MAC, so
// that the server stores nothing for it.
func (p *people) challenge(within time.Duration, cookie string) string {
	c := binary.BigEndian.AppendUint64(random(16), uint64(p.now().Add(within).Unix())) //nolint:gosec // after 1970
	return base64.RawURLEncoding.EncodeToString(append(c, p.seal(c, cookie)...))
}

func (p *people) seal(c []byte, of string) []byte {
	mac := hmac.New(sha256.New, p.secret)
	mac.Write(c)
	mac.Write([]byte(of))
	return mac.Sum(nil)
}

// answer uses up a challenge. It is false for one that is forged, expired, used or another browser's.
func (p *people) answer(challenge, cookie string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(challenge)
	if err != nil || len(raw) != 24+sha256.Size || subtle.ConstantTimeCompare(p.seal(raw[:24], cookie), raw[24:]) != 1 {
		return false
	}
	ends := time.Unix(int64(binary.BigEndian.Uint64(raw[16:24])), 0) //nolint:gosec // authenticated by the MAC
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for c, end := range p.answered {
		if now.After(end) {
			delete(p.answered, c)
		}
	}
	if _, used := p.answered[challenge]; used || now.After(ends) {
		return false
	}
	p.answered[challenge] = ends
	return true
}

// secretOf returns what this process alone can make of the state of a visit to an OpenID provider.
func (p *people) secretOf(state, purpose string) string {
	mac := hmac.New(sha256.New, p.visits)
	mac.Write([]byte(purpose + " " + state))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

const (
	// maxFailures is the number of wrong codes and signatures in a minute after which
	// sign-ins from an address are refused.
	maxFailures = 30
	// maxCounted bounds the addresses and principals that are counted at a time.
	maxCounted = 10_000
)

// failures counts failed sign-ins of the last minute by address and by principal, so
// that an attacker keeps out nobody at another address.
type failures struct {
	now func() time.Time

	mu sync.Mutex
	of map[string]*failed
}

// failed is what one address or principal has failed since a time.
type failed struct {
	times int
	since time.Time
}

func newFailures(now func() time.Time) *failures {
	return &failures{now: now, of: map[string]*failed{}}
}

// tooMany reports whether an address or a principal failed too often.
func (f *failures) tooMany(who string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.of[who]
	return c != nil && f.current(c) && c.times >= maxFailures
}

// add counts one failure, and returns how many there were in the last minute.
func (f *failures) add(who string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.of[who]
	if c == nil {
		f.makeRoom()
		c = &failed{}
		f.of[who] = c
	}
	if !f.current(c) {
		*c = failed{since: f.now()}
	}
	c.times++
	return c.times
}

func (f *failures) current(c *failed) bool { return f.now().Sub(c.since) < time.Minute }

// makeRoom forgets what is older than a minute, or else anything.
func (f *failures) makeRoom() {
	if len(f.of) < maxCounted {
		return
	}
	for who, c := range f.of {
		if !f.current(c) {
			delete(f.of, who)
		}
	}
	for who := range f.of {
		if len(f.of) < maxCounted {
			return
		}
		delete(f.of, who)
	}
}
