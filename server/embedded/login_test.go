package embedded_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/parley-asp/parley/server/login"
	"github.com/parley-asp/parley/test/natskit"
)

func TestPrincipalUsesItsOwnSubjects(t *testing.T) {
	w := start(t, false)
	w.echo("asp.agent.*.submit.*")
	w.echo("asp.agent.*.api.*.*")
	w.streams(alice)
	nc := w.as(alice)
	w.asks(nc, "asp.agent."+alice+".submit.s1")
	w.asks(nc, "asp.agent."+alice+".api.session.get")
	w.reads(nc, alice, jetstream.Msg.Ack)
	w.deliver(alice)
	w.reads(nc, alice, func(m jetstream.Msg) error { return m.DoubleAck(w.ctx) })
}

// A principal publishes and reads under its own token only (PROTOCOL.md §2).
func TestPermissions(t *testing.T) {
	w := start(t, false)
	type rights struct{ publish, subscribe []string }
	for name, may := range map[string]struct{ yes, no rights }{
		alice: {
			yes: rights{
				publish: []string{
					"asp.agent." + alice + ".submit.s1", "asp.agent." + alice + ".api.session.get",
					"$JS.API.CONSUMER.INFO.ASP_INBOX." + alice, "$JS.API.CONSUMER.MSG.NEXT.ASP_INBOX." + alice,
					"$JS.ACK.ASP_INBOX." + alice + ".1.1.1.1.0",
				},
				subscribe: []string{"_INBOX." + alice + ".x"},
			},
			no: rights{
				publish: []string{
					"asp.agent." + bob + ".submit.s1", "asp.agent." + bob + ".api.session.get", "asp.operator.api.agent.add",
					"asp.agent." + alice + ".inbox.s1", "asp.session.s1", "asp.event.s1.closed", "asp.timer.x", "$SRV.PING",
					"$JS.API.CONSUMER.INFO.ASP_INBOX." + bob, "$JS.API.CONSUMER.MSG.NEXT.ASP_INBOX." + bob,
					"$JS.ACK.ASP_INBOX." + bob + ".1.1.1.1.0", "$JS.ACK.ASP_SESSIONS." + alice + ".1.1.1.1.0",
					"$JS.API.STREAM.DELETE.ASP_SESSIONS", "$JS.API.STREAM.INFO.ASP_INBOX", "$JS.API.INFO",
					"$JS.API.CONSUMER.CREATE.ASP_INBOX", "_INBOX." + bob + ".x", "$SYS.REQ.USER.AUTH",
				},
				subscribe: []string{
					"asp.session.>", "asp.event.>", "asp.escalation.>", "asp.agent." + alice + ".inbox.*", "asp.agent.*.submit.*",
					"_INBOX." + bob + ".>", "_INBOX.>", "_INBOX.operator.x", "_R_.>", ">", "$SYS.>",
				},
			},
		},
		login.OperatorName: {
			yes: rights{
				publish:   []string{"asp.operator.api.agent.add", "$SRV.PING", "$SRV.INFO.asp", "$JS.API.STREAM.INFO.ASP_SESSIONS"},
				subscribe: []string{"_INBOX.operator.x", "asp.event.>", "asp.escalation.acme_com.>", "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.*"},
			},
			no: rights{
				publish: []string{
					"asp.agent." + alice + ".submit.s1", "asp.event.s1.closed", "asp.session.s1",
					"$JS.API.STREAM.DELETE.ASP_SESSIONS", "$JS.API.STREAM.PURGE.ASP_SESSIONS", "$JS.API.STREAM.UPDATE.ASP_SESSIONS",
					"$JS.API.STREAM.MSG.GET.ASP_SESSIONS", "$JS.API.STREAM.MSG.DELETE.ASP_SESSIONS", "$JS.API.DIRECT.GET.ASP_SESSIONS",
					"$JS.API.STREAM.SNAPSHOT.ASP_SESSIONS", "$JS.API.STREAM.LEADER.STEPDOWN.ASP_SESSIONS", "$JS.API.CONSUMER.CREATE.ASP_SESSIONS",
					"$JS.API.CONSUMER.MSG.NEXT.ASP_INBOX." + alice, "$SYS.REQ.SERVER.PING",
				},
				subscribe: []string{"asp.session.>", "_INBOX.>", "_INBOX." + alice + ".x", ">", "$SYS.>", "$JS.EVENT.ADVISORY.API", "$JS.EVENT.ADVISORY.>"},
			},
		},
	} {
		check := func(do func(*testing.T, *nats.Conn, string) bool, verb string, subjects []string, want bool) {
			for _, subject := range subjects {
				nc := w.as(name)
				if do(t, nc, subject) != want {
					t.Errorf("%s may %s %s: %t, want %t", name, verb, subject, !want, want)
				}
				nc.Close()
			}
		}
		check(publishes, "publish", may.yes.publish, true)
		check(publishes, "publish", may.no.publish, false)
		check(subscribes, "subscribe to", may.yes.subscribe, true)
		check(subscribes, "subscribe to", may.no.subscribe, false)
	}
}

func TestOperatorCallsAndWatches(t *testing.T) {
	w := start(t, false)
	w.echo("asp.operator.>")
	nc := w.as(login.OperatorName)
	w.asks(nc, "asp.operator.api.agent.add")
	events := subscribe(t, nc, "asp.event.>")
	natskit.Must(t, w.broker.Publish("asp.event.s1.closed", []byte("closed")))
	if got := next(t, events); got.Subject != "asp.event.s1.closed" || string(got.Data) != "closed" {
		t.Fatalf("received %s %q", got.Subject, got.Data)
	}
}

// An operator sees streams, their consumers and disk, and elections, by a key that can change none of it.
func TestOperatorInspects(t *testing.T) {
	w := start(t, false)
	w.streams(alice)
	nc := w.as(login.OperatorName)
	js, err := jetstream.New(nc)
	natskit.Must(t, err)
	account, err := js.AccountInfo(w.ctx)
	if err != nil || account.Streams != 2 || account.Store == 0 {
		t.Errorf("the account: %+v, %v", account, err)
	}
	seen := map[string]uint64{}
	all := js.ListStreams(w.ctx)
	for info := range all.Info() {
		seen[info.Config.Name] = info.State.Bytes
	}
	natskit.Must(t, all.Err())
	if len(seen) != 2 || seen["ASP_INBOX"] == 0 {
		t.Errorf("streams: %v", seen)
	}
	inbox, err := js.Stream(w.ctx, "ASP_INBOX")
	natskit.Must(t, err)
	consumers := inbox.ListConsumers(w.ctx)
	read := 0
	for c := range consumers.Info() {
		if c.Name == alice {
			read++
		}
	}
	if natskit.Must(t, consumers.Err()); read != 1 {
		t.Errorf("%d consumers of %s", read, alice)
	}
	const elected = "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.ASP_SESSIONS"
	elections := subscribe(t, nc, login.Elections[0])
	natskit.Must(t, w.broker.Publish(elected, []byte("{}"))) // as its account's server does in a cluster
	if got := next(t, elections); got.Subject != elected {
		t.Errorf("an election on %s", got.Subject)
	}
}

// A principal can have a reply sent to any subject of its account. So operators have another
// account, or a principal could show them forged events.
func TestInjectedReplyDoesNothing(t *testing.T) {
	w := start(t, false)
	w.streams(alice)
	w.echo("asp.agent.*.submit.*")
	calls := subscribe(t, w.broker, "asp.*.*.api.>")
	operatorCalls := subscribe(t, w.broker, "asp.operator.>")
	transcript := subscribe(t, w.broker, "asp.session.>")
	events := subscribe(t, w.as(login.OperatorName), "asp.event.>")
	nc := w.as(alice)
	for _, reply := range []string{
		"$JS.API.STREAM.DELETE.ASP_SESSIONS", "asp.session.s1", "asp.event.s1.forged",
		"asp.agent." + bob + ".api.session.get", "asp.operator.api.agent.rm",
	} {
		w.deliver(alice)
		natskit.Must(t, nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT.ASP_INBOX."+alice, reply, []byte(`{"batch":1,"no_wait":true}`)))
		natskit.Must(t, nc.PublishRequest("asp.agent."+alice+".submit.s1", reply, []byte("?")))
	}
	// Replies come in order, so everything before it was processed.
	w.asks(nc, "asp.agent."+alice+".submit.s2")
	w.reads(nc, alice, jetstream.Msg.Ack)
	if _, err := w.js.Stream(w.ctx, "ASP_SESSIONS"); err != nil {
		t.Fatalf("the transcripts are gone: %v", err)
	}
	for end, sub := range map[string]*nats.Subscription{
		"asp.x.x.api.end": calls, "asp.operator.end": operatorCalls, "asp.session.end": transcript, "asp.event.end": events,
	} {
		natskit.Must(t, w.broker.Publish(end, nil))
		if msg := next(t, sub); msg.Subject != end {
			t.Errorf("%s arrived: %s", msg.Subject, msg.Data)
		}
	}
}

func TestLoginIsRefused(t *testing.T) {
	w := start(t, false)
	for name, how := range map[string][]nats.Option{
		"no credentials":                     nil,
		"unknown key":                        {natskit.Bare(t, natskit.NewKey(t))},
		"registered key, another's sign":     {nats.Nkey(natskit.Public(t, w.keys[alice]), w.keys[bob].Sign)},
		"registered key, another nonce":      {nats.Nkey(natskit.Public(t, w.keys[alice]), func([]byte) ([]byte, error) { return w.keys[alice].Sign([]byte("old nonce")) })},
		"registered key, empty signature":    {nats.Nkey(natskit.Public(t, w.keys[alice]), func([]byte) ([]byte, error) { return nil, nil })},
		"the broker's key, another's sign":   {nats.Nkey(natskit.Public(t, w.owner), w.keys[alice].Sign)},
		"a principal's name as user":         {nats.UserInfo(alice, "")},
		"a registered key as user":           {nats.UserInfo(natskit.Public(t, w.keys[alice]), "")},
		"the broker's key as user":           {nats.UserInfo(natskit.Public(t, w.owner), "")},
		"the name of the development's user": {nats.UserInfo("dev", "")},
		"a token":                            {nats.Token(natskit.Public(t, w.keys[alice]))},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := w.dial(how...); !errors.Is(err, nats.ErrAuthorization) {
				t.Fatalf("got %v, want %v", err, nats.ErrAuthorization)
			}
		})
	}
}

// The broker is a micro service, and each replica answers (PROTOCOL.md §2).
func TestMicroServiceIsSeen(t *testing.T) {
	for name, dev := range map[string]bool{"dev": true, login.OperatorName: false} {
		t.Run(name, func(t *testing.T) {
			w := start(t, dev)
			for range 2 {
				replica, err := micro.AddService(w.broker, micro.Config{Name: "asp", Version: "1.0.0"})
				natskit.Must(t, err)
				t.Cleanup(func() { natskit.Must(t, replica.Stop()) })
			}
			natskit.Must(t, w.broker.Flush())
			var nc *nats.Conn
			if dev {
				nc = w.connect()
			} else {
				nc = w.as(name)
			}
			for _, subject := range []string{"$SRV.PING", "$SRV.INFO.asp", "$SRV.STATS.asp"} {
				inbox := nc.NewRespInbox()
				answers := subscribe(t, nc, inbox)
				natskit.Must(t, nc.PublishRequest(subject, inbox, nil))
				if one, two := next(t, answers), next(t, answers); string(one.Data) == string(two.Data) {
					t.Fatalf("%s: the same answer twice: %s", subject, one.Data)
				}
			}
		})
	}
}
