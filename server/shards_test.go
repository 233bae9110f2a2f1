package server_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// With several shards, each principal reads its inbox from the stream that the broker says, and from no other.
func TestShardedInboxes(t *testing.T) {
	t.Parallel()
	const shards = 4
	for name, o := range map[string]func() server.Options{
		"embedded": func() server.Options { return server.Options{Data: t.TempDir(), Shards: shards} },
		"config":   func() server.Options { return testkit.Sharded(t, shards) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, o())
			a := agentIn(0, shards)
			b := agentIn(shards-1, shards)
			keys := map[performatives.Agent]*client.Client{}
			for _, agent := range []performatives.Agent{a, b} {
				key := w.registers(agent)
				signer, err := performatives.NewSigner(key)
				testkit.Must(t, err)
				keys[agent], err = client.Connect(w.Ctx, w.URL, agent, testkit.Keys(t, signer)...)
				testkit.Must(t, err)
				t.Cleanup(func() { keys[agent].Close() })
				for n := range shards {
					l := w.logsIn(agent, key)
					stream := api.ShardName(api.InboxStream, n)
					testkit.Must(t, l.Publish("$JS.API.CONSUMER.MSG.NEXT."+stream+"."+agent.Token(), nil))
					if got, may := testkit.Allowed(t, l), stream == api.InboxStreamOf(agent, shards); got != may {
						t.Errorf("%s may read %s: %t, want %t", agent, stream, got, may)
					}
					l.Close()
				}
			}
			s, err := keys[a].Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{b}, Purpose: "storage"})
			testkit.Must(t, err)
			stream, err := testkit.InboxStream(w.Ctx, keys[b].Conn(), b)
			testkit.Must(t, err)
			js, err := jetstream.New(keys[b].Conn())
			testkit.Must(t, err)
			inbox, err := js.Consumer(w.Ctx, stream, b.Token())
			testkit.Must(t, err)
			m, err := inbox.Next(jetstream.FetchMaxWait(testkit.Patience))
			testkit.Must(t, err)
			if want := api.Inbox(b, s.ID()); m.Subject() != want || stream != "ASP_INBOX_3" {
				t.Errorf("%s holds %s, want %s", stream, m.Subject(), want)
			}
			testkit.Must(t, m.Nak())
			own, err := client.Do(w.Ctx, keys[b], api.SessionConsumer, api.AskConsumer{Session: s.ID()})
			if err != nil || own.Stream != stream || own.Pending != 1 {
				t.Errorf("its session consumer: %+v: %v", own, err)
			}
			for _, err := range keys[b].Messages(w.Ctx) { // by the shared consumer
				testkit.Must(t, err)
				break
			}
			_, err = keys[b].Session(s.ID()).Accept(w.Ctx, "inv")
			testkit.Must(t, err)
			_, err = s.Await(w.Ctx, performatives.Accept) // by a session consumer
			testkit.Must(t, err)
		})
	}
}

// agentIn is an agent whose inbox is in a shard.
func agentIn(shard, shards int) performatives.Agent {
	for n := 0; ; n++ {
		a := performatives.Agent(fmt.Sprintf("agent://acme.com/n%d", n))
		if api.InboxStreamOf(a, shards) == api.ShardName(api.InboxStream, shard) {
			return a
		}
	}
}

func TestTooManyShards(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{-1, api.MaxShards + 1} {
		if _, err := server.Start(t.Context(), server.Options{Data: t.TempDir(), Shards: shards}); !errors.Is(err, server.ErrShardCount) {
			t.Errorf("%d shards: %v", shards, err)
		}
	}
}
