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
	"github.com/parley-asp/parley/performatives"
)

// How long a person stays signed in without a look, and how long a challenge
// may be answered.
const (
	signedInFor  = 12 * time.Hour
	challengeFor = 2 * time.Minute
)

// A person is a human who is signed in.
type person struct {
	Agent performatives.Agent
	Name  string
	Key   performatives.Key // in the browser; "" in --dev
	New   []api.Device      // other browsers that were enrolled for them of late
	ends  time.Time
}

// people are those signed in, by what their cookie says. They are in memory: a
// browser that has a key signs in again by itself after a restart.
type people struct {
	now    func() time.Time
	secret []byte // of this process, for challenges

	mu       sync.Mutex
	byCookie map[string]*person
	answered map[string]time.Time // challenges that are used up, until they end anyway
	failures []time.Time          // of the last minute
}

func newPeople(now func() time.Time) *people {
	return &people{now: now, secret: random(32), byCookie: map[string]*person{}, answered: map[string]time.Time{}}
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

// whose finds who has a cookie, and keeps them signed in. It is a copy.
func (p *people) whose(cookie string) (person, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	who, ok := p.byCookie[cookie]
	if !ok || p.now().After(who.ends) {
		return person{}, false
	}
	who.ends = p.now().Add(signedInFor)
	return *who, true
}

func (p *people) leave(cookie string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byCookie, cookie)
}

// challenge is what a browser has to sign to sign in. It carries its own end
// and a seal, so that asking for many costs nothing here.
func (p *people) challenge() string {
	c := binary.BigEndian.AppendUint64(random(16), uint64(p.now().Add(challengeFor).Unix())) //nolint:gosec // after 1970
	return base64.RawURLEncoding.EncodeToString(append(c, p.seal(c)...))
}

func (p *people) seal(c []byte) []byte {
	mac := hmac.New(sha256.New, p.secret)
	mac.Write(c)
	return mac.Sum(nil)
}

// answer uses a challenge up; false if it is not ours, over, or was used.
func (p *people) answer(challenge string) bool {
	raw, err := base64.RawURLEncoding.DecodeString(challenge)
	if err != nil || len(raw) != 24+sha256.Size || subtle.ConstantTimeCompare(p.seal(raw[:24]), raw[24:]) != 1 {
		return false
	}
	ends := time.Unix(int64(binary.BigEndian.Uint64(raw[16:24])), 0) //nolint:gosec // it was ours
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

// maxFailures is how many codes and signatures in a minute may be wrong before
// no more are looked at.
const maxFailures = 30

// tired tells whether there were too many failures of late.
func (p *people) tired() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := p.now().Add(-time.Minute)
	for len(p.failures) > 0 && p.failures[0].Before(since) {
		p.failures = p.failures[1:]
	}
	return len(p.failures) >= maxFailures
}

func (p *people) failed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = append(p.failures, p.now())
}
