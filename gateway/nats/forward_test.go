package natsgateway

import (
	"testing"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/natskit"
)

// The answer of an owner that goes through another broker is charged there: to the principal who asked, and not to
// a gateway, which charges for what it sends on.
func TestRelayedAnswerIsCharged(t *testing.T) {
	t.Parallel()
	const alpha, answer = "agent://acme.com/alpha", `{"accepted":true}`
	for _, asked := range []struct {
		by, code string
		charged  int
	}{
		{imported + "alpha", "", len(answer)},
		{imported + "alpha", "400", 0},
		{"_INBOX.gateway", "", 0},
	} {
		charged := 0
		g := &Gateway{o: Options{ID: "here", Conn: natskit.StartServer(t).Connect(), Log: zap.NewNop(), Sent: func(to performatives.Agent, bytes int) {
			if to == alpha {
				charged += bytes
			}
		}}}
		f, err := g.openForwarder()
		natskit.Must(t, err)
		t.Cleanup(f.close)
		g.inFlight.Add(1)
		reply, err := f.answers.Put(forwarded{r: routed{&nats.Msg{Reply: asked.by}}, sender: alpha, release: func() {}})
		natskit.Must(t, err)
		m := &nats.Msg{Subject: reply, Header: nats.Header{}, Data: []byte(answer)}
		if asked.code != "" {
			m.Header.Set(api.ErrorCodeHeader, asked.code)
		}
		f.answered(m)
		g.inFlight.Wait()
		if charged != asked.charged {
			t.Errorf("of %+v, %d bytes are charged", asked, charged)
		}
	}
}
