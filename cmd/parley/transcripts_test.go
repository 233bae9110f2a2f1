package main

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
)

// A transcript is read page by page, while servers and brokers may come and go:
// what is answered unavailable is asked again.
func TestTranscriptIsAskedForAgain(t *testing.T) {
	t.Parallel()
	key := must(nkeys.CreateUser())
	s := must(natsserver.NewServer(&natsserver.Options{
		Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, NoSigs: true, NoLog: true, Nkeys: []*natsserver.NkeyUser{{Nkey: must(key.PublicKey())}},
	}))
	s.Start()
	t.Cleanup(s.Shutdown)
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	line, _ := invitation(t, "INVITED")
	nc := must(nats.Connect(s.ClientURL(), nats.Nkey(must(key.PublicKey()), key.Sign)))
	t.Cleanup(nc.Close)
	asked := 0
	must(nc.Subscribe(api.OperatorCall(api.SessionMessages.Name), func(m *nats.Msg) {
		reply, answer := nats.NewMsg(m.Reply), any(api.Messages{Messages: []jsontext.Value{line}})
		if asked++; asked == 1 {
			refusal := session.Refuse(session.Unavailable, "there is an election")
			reply.Header.Set(api.ErrorCodeHeader, fmt.Sprint(refusal.Code.Status()))
			answer = api.Refused(refusal)
		}
		reply.Data = must(json.Marshal(answer))
		nc.PublishMsg(reply) //nolint:errcheck // the test waits for it
	}))
	check(nc.Flush())
	data := t.TempDir()
	check(server.WriteSecret(data+"/"+server.OperatorSeed, must(key.Seed())))
	root, out := rootCommand(), new(bytes.Buffer)
	root.SetOut(out)
	root.SetErr(out)
	root.SetArgs([]string{"session", "export", "019478a3-0001-7def-8a12-000000000001", "--url", s.ClientURL(), "--data", data})
	if err := root.ExecuteContext(t.Context()); err != nil || out.String() != string(line)+"\n" {
		t.Errorf("says %s%v, want %s", out, err, line)
	}
}
