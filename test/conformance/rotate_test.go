package conformance

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// rotation is a request of agent.rotate, signed as PROTOCOL.md §9 says.
func rotation(t *testing.T, uri, newKey string, at time.Time, signer nkeys.KeyPair, proof ...nkeys.KeyPair) []byte {
	t.Helper()
	v := map[string]any{"agentId": uri, "key": newKey, "timestamp": at.UTC().Format(time.RFC3339Nano)}
	if len(proof) > 0 && testkit.Public(t, proof[0]) == newKey { // who has the new key also logs in anew
		v["loginKeys"] = testkit.LoginKeys(t, proof[0])
	}
	signed := canonical(t, v)
	for member, by := range map[string][]nkeys.KeyPair{"signature": {signer}, "proof": proof} {
		for _, key := range by {
			sig, err := key.Sign(signed)
			testkit.Must(t, err)
			v[member] = "ed25519:" + hex.EncodeToString(sig)
		}
	}
	return canonical(t, v)
}

func newKey(t *testing.T) (nkeys.KeyPair, string) {
	t.Helper()
	pair := testkit.NewKey(t)
	return pair, testkit.Public(t, pair)
}

// again logs a principal in with another key.
func (p *principal) again(b *testkit.Broker, key nkeys.KeyPair) *principal {
	p.Helper()
	return &principal{T: p.T, uri: p.uri, key: key, nc: b.Plain(testkit.Login(p.T, key), nats.CustomInboxPrefix("_INBOX."+token(p.uri)))}
}

// disconnected waits until a connection has been closed from the other side.
func disconnected(t *testing.T, nc *nats.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	for changes := nc.StatusChanged(nats.RECONNECTING, nats.CLOSED); nc.IsConnected(); {
		select {
		case <-changes:
		case <-ctx.Done():
			t.Fatal("still connected")
		}
	}
}

// TestRotation: a principal gives itself another key in the middle of a session.
// It is answered, the old key is worth nothing from then on, and the transcript
// verifies with the keys that it pinned (PROTOCOL.md §9, §11).
func TestRotation(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{})
	a, w := join(t, b, alpha), join(t, b, beta)
	id := v7()
	accepted(t, a.says(id, "PROPOSE", invite(beta)))
	accepted(t, w.says(id, "ACCEPT", `{"referenceId":"inv"}`))
	accepted(t, a.says(id, "PROPOSE", `{"proposalId":"p1","type":"x","subject":"x","terms":{"price":1}}`))
	old := signWith(t, a.key, envelope(id, alpha, "OBSERVE", `{"subject":"x"}`))
	accepted(t, ask(t, a.nc, submitSubject(alpha, id), old))

	pair, public := newKey(t)
	request := rotation(t, alpha, public, time.Now(), a.key, pair)
	m := ask(t, a.nc, "asp.agent."+token(alpha)+".api.agent.rotate", request)
	var card struct{ AgentID, Key string }
	if err := json.Unmarshal(m.Data, &card); err != nil || card.Key != public || card.AgentID != alpha {
		t.Fatalf("%s %v", m.Data, err)
	}
	disconnected(t, a.nc)
	if nc, err := nats.Connect(b.URL, testkit.Login(t, a.key), nats.Timeout(wait)); err == nil {
		nc.Close()
		t.Error("the old key has logged in")
	}
	now := a.again(b, pair)
	for name, data := range map[string][]byte{
		"an act signed with the old key": signWith(t, a.key, envelope(id, alpha, "OBSERVE", `{"subject":"x"}`)),
		"an accepted one of the old key": old,
		"another":                        signWith(t, a.key, envelope(id, alpha, "INFORM", `{"type":"fact","data":1}`)),
	} {
		if got := checkRefusal(t, ask(t, now.nc, submitSubject(alpha, id), data)); got != "signature_invalid" {
			t.Errorf("%s: %s", name, got)
		}
	}
	// Asked again, as if the answer had been lost.
	if m := ask(t, now.nc, "asp.agent."+token(alpha)+".api.agent.rotate", request); !strings.Contains(string(m.Data), public) {
		t.Errorf("%s", m.Data)
	}
	accepted(t, w.says(id, "ACCEPT", `{"referenceId":"p1"}`))
	accepted(t, now.says(id, "OBSERVE", `{"subject":"with the new key"}`))
	last := accepted(t, now.says(id, "CLOSE", `{"outcome":"completed"}`))

	page := ask(t, w.nc, "asp.agent."+token(beta)+".api.session.messages", []byte(`{"sessionId":"`+id+`"}`))
	var read struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(page.Data, &read); err != nil || len(read.Messages) != 7 {
		t.Fatalf("%d entries, %v", len(read.Messages), err)
	}
	var joined struct {
		Integrity struct {
			Joined []struct{ AgentID, Key string }
		}
	}
	if err := json.Unmarshal(read.Messages[5], &joined); err != nil || len(joined.Integrity.Joined) != 1 || joined.Integrity.Joined[0].Key != public {
		t.Errorf("the first act with the new key does not pin it: %s", read.Messages[5])
	}
	lines := bytes.Join(asBytes(read.Messages), []byte("\n"))
	expect := transcript.Expect{Session: performatives.SessionID(id), Head: performatives.Hash(last.Hash), Length: 7}
	if faults, err := transcript.Verify(bytes.NewReader(lines), b.Broker.Command.Key(), expect); err != nil || len(faults) > 0 {
		t.Error(faults, err)
	}
	replayed(t, id, read.Messages)
}

// TestRotatedAgreement: who offers with one key and commits with the next has both in the evidence of the
// agreement, and a verifier may trust either, but no third one (GATEWAYS.md G4).
func TestRotatedAgreement(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{})
	a, w := join(t, b, alpha), join(t, b, beta)
	id := v7()
	accepted(t, a.says(id, "PROPOSE", invite(beta)))
	accepted(t, w.says(id, "ACCEPT", `{"referenceId":"inv"}`))
	accepted(t, a.says(id, "PROPOSE", `{"proposalId":"p1","type":"x","subject":"x","terms":{"price":1}}`))
	accepted(t, w.says(id, "ACCEPT", `{"referenceId":"p1"}`))
	old, err := a.key.PublicKey()
	testkit.Must(t, err)
	pair, public := newKey(t)
	ask(t, a.nc, "asp.agent."+token(alpha)+".api.agent.rotate", rotation(t, alpha, public, time.Now(), a.key, pair))
	disconnected(t, a.nc)
	accepted(t, a.again(b, pair).says(id, "COMMIT", `{"commitmentId":"c1","referenceId":"p1","terms":{"obligations":[{"party":"`+alpha+`","action":"deliver"}]}}`))
	accepted(t, w.says(id, "ACCEPT", `{"referenceId":"c1"}`))

	made := ask(t, w.nc, "asp.agent."+token(beta)+".api.agreement.get", []byte(`{"sessionId":"`+id+`"}`)).Data
	by := func(file []byte, trusted string, broker performatives.Key) []agreement.Fault {
		trust := agreement.Trust{Broker: broker, Keys: map[performatives.Agent]performatives.Key{}}
		if trusted != "" {
			trust.Keys[alpha] = performatives.Key(trusted)
		}
		report := agreement.Verify(file, trust)
		report.Demand(trust)
		return report.Faults
	}
	verify := func(file []byte, trusted string) []agreement.Fault { return by(file, trusted, b.Broker.Command.Key()) }
	for _, trusted := range []string{"", old, public} {
		if faults := verify(made, trusted); len(faults) > 0 {
			t.Errorf("with the key %q: %v\n%s", trusted, faults, made)
		}
	}
	if faults := by(made, old, ""); len(faults) != 1 || !strings.HasPrefix(faults[0].Member, "/evidence/rotated/") {
		t.Errorf("without the broker's key anybody may have made the second key: %v", faults)
	}
	_, third := newKey(t)
	rotated := bytes.Index(made, []byte(`"rotated":`))
	if rotated < 0 {
		t.Fatalf("the evidence does not name the second key: %s", made)
	}
	swapped := slices.Concat(made[:rotated], bytes.ReplaceAll(bytes.ReplaceAll(made[rotated:], []byte(old), []byte(third)), []byte(public), []byte(third)))
	if len(verify(made, third)) == 0 || len(verify(swapped, "")) == 0 {
		t.Error("a key that signed nothing is taken")
	}
	lent := bytes.Replace(made, []byte(`"rotated":{`), []byte(`"rotated":{"`+beta+`":["`+old+`"],`), 1)
	if faults := verify(lent, ""); len(faults) != 1 || faults[0].Member != "/evidence/rotated/"+beta {
		t.Errorf("a key that signed for alpha alone is taken as beta's: %v", faults)
	}
}

// TestRotationRefused: what does not change a key, and who must not.
func TestRotationRefused(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{})
	a, w := join(t, b, alpha), join(t, b, beta)
	pair, public := newKey(t)
	_, other := newKey(t)
	taken, err := w.key.PublicKey()
	testkit.Must(t, err)
	account, err := nkeys.CreateAccount()
	testkit.Must(t, err)
	notAUser, err := account.PublicKey()
	testkit.Must(t, err)
	good := string(rotation(t, alpha, public, time.Now(), a.key, pair))
	own := string(b.Broker.Command.Key())
	for _, c := range []struct{ name, request, want string }{
		{"unsigned", `{"key":"` + public + `"}`, "signature_invalid"},
		{"signed with the new key", string(rotation(t, alpha, public, time.Now(), pair)), "signature_invalid"},
		{"the new key does not sign", string(rotation(t, alpha, public, time.Now(), a.key)), "signature_invalid"},
		{"another signs as the new key", string(rotation(t, alpha, public, time.Now(), a.key, w.key)), "signature_invalid"},
		{"the broker's key", string(rotation(t, alpha, own, time.Now(), a.key)), "duplicate"},
		{"signed by another", string(rotation(t, alpha, public, time.Now(), w.key)), "signature_invalid"},
		{"for another key", strings.Replace(good, public, other, 1), "signature_invalid"},
		{"another's", string(rotation(t, beta, public, time.Now(), w.key)), "unauthorized"},
		{"long ago", string(rotation(t, alpha, public, time.Now().Add(-6*time.Minute), a.key)), "stale_timestamp"},
		{"not yet", string(rotation(t, alpha, public, time.Now().Add(6*time.Minute), a.key)), "stale_timestamp"},
		{"the key of another", string(rotation(t, alpha, taken, time.Now(), a.key)), "duplicate"},
		{"no user's key", string(rotation(t, alpha, notAUser, time.Now(), a.key)), "schema_invalid"},
		{"no key", `{}`, "malformed"},
		{"not JSON", `{`, "malformed"},
	} {
		if got := checkRefusal(t, ask(t, a.nc, "asp.agent."+token(alpha)+".api.agent.rotate", []byte(c.request))); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if card, ok := b.Broker.Parts.Registry.Principal(performatives.Key(public)); ok {
		t.Errorf("%s has the key", card)
	}
	accepted(t, a.says(v7(), "PROPOSE", invite(beta))) // the old key is the key
}

// TestRotationByAnOperator needs no signature.
func TestRotationByAnOperator(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{})
	a := join(t, b, alpha)
	join(t, b, beta)
	operator := b.Plain(testkit.Bare(t, b.Operator()), nats.CustomInboxPrefix("_INBOX.operator"))
	pair, public := newKey(t)
	rotate := func(uri string) *nats.Msg {
		return ask(t, operator, "asp.operator.api.agent.rotate", []byte(`{"agentId":"`+uri+`","key":"`+public+`","loginKeys":["`+string(testkit.LoginKeys(t, pair)[0])+`"]}`))
	}
	if got := checkRefusal(t, rotate("agent://nowhere.net/x")); got != "unknown_agent" {
		t.Error(got)
	}
	if m := rotate(alpha); !strings.Contains(string(m.Data), public) {
		t.Fatalf("%s", m.Data)
	}
	disconnected(t, a.nc)
	accepted(t, a.again(b, pair).says(v7(), "PROPOSE", invite(beta)))
}
