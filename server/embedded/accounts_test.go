package embedded

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/server/login"
)

// No two imports overlap, since a request on both would be carried out twice.
func TestImportsDoNotOverlap(t *testing.T) {
	for name, services := range map[string][]service{
		"principals": principalServices(1), "operators": operatorServices, "development": devServices(1), "shards": principalServices(api.MaxShards),
	} {
		all := subjects(services)
		for i, one := range all {
			for _, other := range all[:i] {
				if server.SubjectsCollide(one, other) {
					t.Errorf("%s: %s and %s overlap", name, one, other)
				}
			}
		}
	}
}

// The server fsyncs before it acknowledges, unless configured otherwise.
func TestSync(t *testing.T) {
	for interval, always := range map[time.Duration]bool{0: true, time.Second: false} {
		key, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		pub, err := key.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		issuer, err := nkeys.CreateAccount()
		if err != nil {
			t.Fatal(err)
		}
		authority, err := login.NewAuthority(issuer)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Start(Options{StoreDir: t.TempDir(), Listen: "127.0.0.1:0", Dev: true, SyncInterval: interval, Broker: pub, Authority: authority})
		if err != nil {
			t.Fatal(err)
		}
		got := s.nats.JetStreamConfig()
		s.Shutdown()
		if got.SyncAlways != always || !always && got.SyncInterval != interval {
			t.Errorf("interval %s: always %t, every %s", interval, got.SyncAlways, got.SyncInterval)
		}
	}
}
