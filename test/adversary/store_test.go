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

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/node"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/wire"
)

// presence is the one bucket that changes by itself: brokers say that they are there.
const presence = "KV_ASP_BROKERS"

// harmless runs an attack and compares all that is stored before and after: the streams'
// configurations and each message, and each reader's place in its inbox. The consumers of
// those who attack are theirs to move.
func (w *world) harmless(attack func(), attackers ...performatives.Agent) {
	w.Helper()
	js := w.inside()
	before := w.store(js, attackers)
	attack()
	if diff := cmp.Diff(before, w.store(js, attackers)); diff != "" {
		w.Errorf("the attack has left a trace (-before +after):\n%s", diff)
	}
}

// inside is the store as the broker sees it.
func (w *world) inside() jetstream.JetStream {
	w.Helper()
	key, err := node.ReadSeed(filepath.Join(w.broker.Data, node.BrokerSeed))
	must(w.T, err)
	public, err := key.PublicKey()
	must(w.T, err)
	js, err := jetstream.New(w.broker.Plain(nats.Nkey(public, key.Sign)))
	must(w.T, err)
	return js
}

// store is all that JetStream holds, by the name of what holds it.
func (w *world) store(js jetstream.JetStream, except []performatives.Agent) map[string]string {
	w.Helper()
	w.settled()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	held := map[string]string{}
	streams := js.ListStreams(ctx)
	for info := range streams.Info() {
		name := info.Config.Name
		if name == presence {
			continue
		}
		held[name] = fmt.Sprintf("%+v", info.Config)
		stream, err := js.Stream(ctx, name)
		must(w.T, err)
		for seq := info.State.FirstSeq; seq != 0 && seq <= info.State.LastSeq; seq++ {
			m, err := stream.GetMsg(ctx, seq)
			if err != nil { // deleted, such as a timer that was set anew
				continue
			}
			sum := sha256.Sum256(m.Data)
			held[fmt.Sprintf("%s %d", name, seq)] = fmt.Sprintf("%s %v %s", m.Subject, header(m.Header), hex.EncodeToString(sum[:]))
		}
		if name != wire.InboxStream {
			continue
		}
		consumers := stream.ListConsumers(ctx)
		for c := range consumers.Info() {
			if !slices.ContainsFunc(except, func(a performatives.Agent) bool { return a.Token() == c.Name }) {
				held[name+" "+c.Name] = fmt.Sprintf("%+v %v %v %d %d", c.Config, c.Delivered.Consumer, c.AckFloor.Consumer, c.NumAckPending, c.NumPending)
			}
		}
		must(w.T, consumers.Err())
	}
	must(w.T, streams.Err())
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

// settled returns when all that follows from the acts so far has been written: a session does
// one thing after the other, and this reading comes behind them.
func (w *world) settled() {
	w.Helper()
	if m := w.people[alpha].calls(wire.SessionGet, fmt.Sprintf(`{"sessionId":%q}`, w.deal)); m.Header.Get(wire.ErrorCodeHeader) != "" {
		w.Fatalf("%s", m.Data)
	}
}
