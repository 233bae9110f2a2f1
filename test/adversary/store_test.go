package adversary

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// byThemselves change by themselves: brokers say that they are there, and when agents were
// last seen.
var byThemselves = []string{"KV_ASP_BROKERS", "KV_" + api.SeenBucket}

// harmless runs an attack that must leave no trace.
func (w *world) harmless(attack func(), attackers ...performatives.Agent) {
	w.Helper()
	if trace := w.trace(attack, attackers...); trace != "" {
		w.Errorf("the attack has left a trace (-before +after):\n%s", trace)
	}
}

// trace compares all that is stored before and after: the streams' configurations and each
// message, and each reader's place in its inbox (the server counts what is left in it a little
// later, but the messages are compared). The inboxes of those who attack are theirs to read.
func (w *world) trace(attack func(), attackers ...performatives.Agent) string {
	w.Helper()
	js := w.inside()
	before := w.store(js, attackers)
	attack()
	return cmp.Diff(before, w.store(js, attackers))
}

// inside is the store as the broker sees it.
func (w *world) inside() jetstream.JetStream {
	w.Helper()
	key, err := server.ReadSeed(filepath.Join(w.Data, server.BrokerLogin))
	testkit.Must(w, err)
	public, err := key.PublicKey()
	testkit.Must(w, err)
	js, err := jetstream.New(w.Plain(nats.Nkey(public, key.Sign)))
	testkit.Must(w, err)
	return js
}

// store is all that JetStream holds, by the name of what holds it.
func (w *world) store(js jetstream.JetStream, except []performatives.Agent) map[string]string {
	w.Helper()
	w.applied()
	ctx, cancel := context.WithTimeout(w.Context(), testkit.Patience)
	defer cancel()
	held := map[string]string{}
	streams := js.ListStreams(ctx)
	for info := range streams.Info() {
		name := info.Config.Name
		if slices.Contains(byThemselves, name) {
			continue
		}
		held[name] = fmt.Sprintf("%+v", info.Config)
		stream, err := js.Stream(ctx, name)
		testkit.Must(w, err)
		for seq := info.State.FirstSeq; seq != 0 && seq <= info.State.LastSeq; seq++ {
			m, err := stream.GetMsg(ctx, seq)
			if err != nil || m.Header.Get("Nats-TTL") != "" { // deleted, such as a timer that was set anew; or about to be
				continue
			}
			sum := sha256.Sum256(m.Data)
			held[fmt.Sprintf("%s %d", name, seq)] = fmt.Sprintf("%s %v %s", m.Subject, header(m.Header), hex.EncodeToString(sum[:]))
		}
		if name != api.InboxStream {
			continue
		}
		consumers := stream.ListConsumers(ctx)
		for c := range consumers.Info() {
			if !slices.ContainsFunc(except, func(a performatives.Agent) bool { return a.Token() == c.Name }) {
				held[name+" "+c.Name] = fmt.Sprintf("%+v %v %v %d", c.Config, c.Delivered.Consumer, c.AckFloor.Consumer, c.NumAckPending)
			}
		}
		testkit.Must(w, consumers.Err())
	}
	testkit.Must(w, streams.Err())
	if len(held) < 20 {
		w.Fatalf("the store holds only %v", slices.Collect(maps.Keys(held)))
	}
	return held
}

func header(h nats.Header) string {
	var lines []string
	for k, v := range h {
		lines = append(lines, k+"="+strings.Join(v, ","))
	}
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

// TestTracesAreSeen: what the other tests look for is found where it is.
func TestTracesAreSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reads := func() {
		js, err := jetstream.New(w.Principal(alpha).Conn())
		testkit.Must(t, err)
		inbox, err := js.Consumer(t.Context(), api.InboxStream, alpha.Token())
		testkit.Must(t, err)
		m, err := inbox.Next(jetstream.FetchMaxWait(testkit.Patience))
		testkit.Must(t, err)
		testkit.Must(t, m.DoubleAck(t.Context()))
	}
	for name, c := range map[string]struct {
		do    func()
		where string
	}{
		"an act":             {func() { w.Principal(beta).Say(w.deal, testkit.Fact("more")) }, api.SessionsStream},
		"its delivery":       {func() { w.Principal(beta).Say(w.deal, testkit.Fact("more")) }, api.InboxStream},
		"an acknowledgement": {reads, api.InboxStream + " " + alpha.Token()},
		"a card":             {func() { w.Principal(eve).Call(api.AgentRegister.Name, `{"card":{"name":"Eve"}}`) }, "KV_ASP_AGENTS"},
	} {
		if trace := w.trace(c.do); !strings.Contains(trace, c.where) {
			t.Errorf("%s leaves no trace in %s: %s", name, c.where, trace)
		}
	}
	w.harmless(reads, alpha)
}

// applied returns when all that follows from the acts so far has been written: a session does
// one thing after the other, and the operator's list reads every session behind them.
func (w *world) applied() {
	w.Helper()
	m, err := w.overseer().Request(api.OperatorCall(api.SessionList.Name), []byte(`{"limit":1000}`), testkit.Patience)
	testkit.Must(w, err)
	if m.Header.Get(api.ErrorCodeHeader) != "" {
		w.Fatalf("%s", m.Data)
	}
}

// overseer is the operator's connection, made once.
func (w *world) overseer() *nats.Conn {
	w.Helper()
	if w.oversees == nil {
		w.oversees = w.Operates().Conn()
	}
	return w.oversees
}
