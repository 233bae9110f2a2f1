package ledger_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/test/natskit"
)

// TestTorn: a log whose stream lacks leaves is not served, and an operator is told why.
func TestTorn(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	js, err := jetstream.New(p.server.Connect())
	natskit.Must(t, err)
	stream, err := js.Stream(p.ctx, api.LogStream)
	natskit.Must(t, err)
	config := stream.CachedInfo().Config
	natskit.Must(t, js.DeleteStream(p.ctx, api.LogStream))
	config.FirstSeq = 4 // the first three leaves are gone
	_, err = js.CreateStream(p.ctx, config)
	natskit.Must(t, err)
	l := p.open(newBoard())
	l.append(names(3, 8)...)
	for l.Trouble() == nil {
		if p.ctx.Err() != nil {
			t.Fatalf("it is not found out: %v", l.Refused())
		}
		l.get("checkpoint")
	}
	if !strings.Contains(l.Trouble().Error(), "lacks leaves") {
		t.Error(l.Trouble())
	}
	if status, _, _ := l.get("checkpoint"); status != http.StatusServiceUnavailable {
		t.Errorf("it is served: %d", status)
	}
	if proof, err := l.Proof(p.ctx, inclusion.Session, names(3, 4)[0]); proof != nil || err != nil {
		t.Errorf("it proves %v, %v", proof, err)
	}
}
