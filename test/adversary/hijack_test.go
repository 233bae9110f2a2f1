package adversary

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server/login"
	"github.com/parley-asp/parley/test/testkit"
)

// Hijack: whoever is logged in listens, writes and calls where it does not belong. NATS itself
// says no (PROTOCOL.md §2), and an answer that is sent astray does nothing.

// TestHijackListens subscribes to everything there is, while others negotiate.
func TestHijackListens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, a := range []performatives.Agent{eve, beta, mallory} {
		p := w.Principal(a)
		var ears []*nats.Subscription
		listens := func(subject, queue string, may bool) {
			nc, err := p.Dial(p.Login())
			testkit.Must(t, err)
			sub, err := nc.QueueSubscribeSync(subject, queue)
			testkit.Must(t, err)
			if !may && !testkit.Denied(t, nc, subject) {
				t.Errorf("%s may subscribe to %s %s", a, subject, queue)
			}
			testkit.Must(t, nc.Flush())
			ears = append(ears, sub)
		}
		for _, subject := range []string{
			">", "*", "*.>", "asp.>", "asp.*", "asp.*.*", "asp.*.*.*.*", "asp.agent.>", "asp.agent.*.*.*",
			"asp.agent." + alpha.Token() + ".submit.*", "asp.agent.*.submit.*", "asp.agent.*.submit." + string(w.deal),
			"asp.agent." + alpha.Token() + ".inbox.*", "asp.agent." + a.Token() + ".inbox.*", "asp.agent." + a.Token() + ".>",
			"asp.agent.*.api.*.*", "asp.operator.>", "asp.operator.api.*.*", "asp.session.>", "asp.session." + string(w.deal),
			"asp.event.>", "asp.event." + string(w.deal) + ".state", "asp.escalation.>", "asp.escalation.acme_com.high.*",
			"asp.timer.>", "asp.index.*", "asp.call.>",
			"_INBOX.>", "_INBOX.*", "_INBOX.*.>", "_INBOX." + alpha.Token() + ".>", "_INBOX." + alpha.Token() + ".*.*", "_INBOX." + alpha.Token(),
			"_INBOX.operator.>", "_INBOX.parley.>", "_INBOX." + a.Token(), "_INBOX." + a.Token() + "x.>",
			"$JS.>", "$JS.API.>", "$JS.ACK.>", "$JS.EVENT.>", "$JS.EVENT.ADVISORY.>", "$JS.API.CONSUMER.MSG.NEXT.ASP_INBOX." + a.Token(),
			"$JS.ACK.ASP_INBOX." + a.Token() + ".>", "$KV.>", "$KV.ASP_AGENTS.>", "$O.>", "$SYS.>", "$SYS.REQ.USER.AUTH", "$SYS.ACCOUNT.>",
			"$SRV.>", "$SRV.PING", "_R_.>", "_R_", "_GR_.>", "$NRG.>", "$LDS.>", "$MQTT.>",
		} {
			listens(subject, "", false)
		}
		// In the broker's own queue group a listener would take requests away from it.
		for _, subject := range []string{"asp.agent.*.submit.*", "asp.agent.*.api.*.*", ">", "_INBOX.>"} {
			listens(subject, api.ServiceName, false)
		}
		listens("_INBOX."+a.Token()+".>", "", true)

		w.Principal(alpha).Say(w.deal, testkit.Fact("nothing for "+string(a)))
		w.applied()
		for _, sub := range ears {
			if n, _, err := sub.Pending(); err == nil && n > 0 {
				t.Errorf("%s receives on %s", a, sub.Subject)
			}
		}
	}
}

// TestHijackPublishes sends to every subject that is not its own.
func TestHijackPublishes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := string(w.deal)
	w.harmless(func() {
		for _, p := range []*testkit.Principal{w.Principal(eve), w.Principal(beta), w.Principal(mallory), w.Operates()} {
			for _, subject := range foreignSubjects(p.Agent, session) {
				// The operator's own subjects are no attack of the operator's.
				if !mayPublish(p, subject) && !w.isDenied(p, subject, "") {
					t.Errorf("%s may publish %s", p.Conn().Opts.InboxPrefix, subject)
				}
			}
		}
	}, eve, beta, mallory)
	testkit.Must(t, w.Server.Broker.Command.Healthy(t.Context()))
	w.Principal(alpha).Say(w.deal, testkit.Fact("still here"))
}

func mayPublish(p *testkit.Principal, subject string) bool {
	inspects := slices.ContainsFunc(login.Inspections, func(pattern string) bool { return server.SubjectsCollide(pattern, subject) })
	return p.Conn().Opts.InboxPrefix == "_INBOX.operator" && (subject == "asp.operator.api.agent.rm" || subject == "$SRV.PING" || inspects)
}

// isDenied publishes with the credentials of a person, on a connection of its own.
func (w *world) isDenied(p *testkit.Principal, subject, reply string) bool {
	w.Helper()
	nc, err := p.Dial(p.Login(), nats.CustomInboxPrefix(p.Conn().Opts.InboxPrefix))
	testkit.Must(w, err)
	defer nc.Close()
	testkit.Must(w, nc.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Data: []byte("{}")}))
	return testkit.Denied(w, nc, subject)
}

// foreignSubjects are all that a principal must not publish to; alpha is the victim.
func foreignSubjects(own performatives.Agent, session string) []string {
	victim, me := alpha.Token(), own.Token()
	if own == "" { // the operator
		me = eve.Token()
	}
	subjects := []string{
		"asp.agent." + victim + ".submit." + session, "asp.agent." + victim + ".api.session.get", "asp.agent." + victim + ".api.agent.register",
		"asp.agent." + victim + ".inbox." + session, "asp.agent." + me + ".inbox." + session, "asp.agent.*.submit." + session,
		"asp.agent." + me + ".submit." + session + ".more", "asp.agent." + me + ".api.session", "asp.agent." + me + ".api.session.get.more",
		"asp.route.0.agent." + victim + ".submit." + session, "asp.home.0.agent." + victim + ".submit." + session, "asp.route.0.agent." + me + ".submit." + session,
		"asp.agent." + me, "asp.agent", "asp", "asp.operator.api.agent.rm", "asp.session." + session, "asp.session",
		"asp.event." + session + ".closed", "asp.escalation.acme_com.high." + session, "asp.timer.at." + session, "asp.timer.due." + session,
		"asp.index." + session, "asp.discovery.x", "asp.call.x", "_INBOX." + victim + ".x", "_INBOX." + me + ".x", "_INBOX.operator.x", "_INBOX.parley.x", "_R_.x.y",
		"$KV.ASP_AGENTS." + victim, "$KV.ASP_SCHEMAS.x", "$KV.ASP_BROKERS.x", "$O.ASP.x", "$SRV.PING",
		"$SYS.REQ.USER.AUTH", "$SYS.REQ.SERVER.PING", "$SYS.REQ.SERVER.PING.CONNZ", "$SYS.REQ.ACCOUNT.ASP.CONNZ", "$SYS.REQ.CLAIMS.UPDATE",
		"$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST", "$JS.API.SERVER.REMOVE", "$JS.API.META.LEADER.STEPDOWN",
		"$JS.API.ACCOUNT.PURGE.ASP", "$JS.API.STREAM.CREATE.MINE", "$JS.API.STREAM.RESTORE.MINE", "$JS.API.CONSUMER.INFO.ASP_INBOX.*",
		"$JS.SNAPSHOT.ACK.ASP_SESSIONS.x", "$JS.SNAPSHOT.RESTORE.ASP_SESSIONS.x", "$JS.FC.ASP_SESSIONS.x.y", "$JSC.R.x",
	}
	for _, stream := range []string{api.SessionsStream, api.InboxStream, api.EscalationsStream, api.TimersStream, api.IndexStream, "KV_ASP_AGENTS"} {
		for _, verb := range []string{
			"STREAM.UPDATE", "STREAM.DELETE", "STREAM.PURGE", "STREAM.INFO", "STREAM.SNAPSHOT", "STREAM.RESTORE", "STREAM.CREATE",
			"STREAM.MSG.GET", "STREAM.MSG.DELETE", "STREAM.PEER.REMOVE", "STREAM.LEADER.STEPDOWN", "DIRECT.GET",
			"CONSUMER.CREATE", "CONSUMER.LIST", "CONSUMER.NAMES",
		} {
			subjects = append(subjects, "$JS.API."+verb+"."+stream)
		}
		subjects = append(subjects, "$JS.API.DIRECT.GET."+stream+".asp.session."+session, "$JS.ACK."+stream+"."+victim+".1.1.1.1.0")
	}
	for _, consumer := range []string{victim, me, victim + "+0", me + "+0"} {
		for _, verb := range []string{"CREATE", "DURABLE.CREATE", "DELETE", "PAUSE", "UNPIN", "RESET", "LEADER.STEPDOWN"} {
			subjects = append(subjects, "$JS.API.CONSUMER."+verb+".ASP_INBOX."+consumer)
		}
		subjects = append(subjects, "$JS.API.CONSUMER.CREATE.ASP_INBOX."+consumer+".asp.agent."+victim+".inbox.*",
			"$JS.API.CONSUMER.MSG.NEXT.ASP_INBOX."+consumer+".more", "$JS.API.CONSUMER.MSG.NEXT.ASP_SESSIONS."+consumer)
	}
	for _, consumer := range []string{victim + "+0", victim + "+31", me + "+32", me + "+"} { // session consumers
		subjects = append(subjects, "$JS.API.CONSUMER.INFO.ASP_INBOX."+consumer, "$JS.API.CONSUMER.MSG.NEXT.ASP_INBOX."+consumer,
			"$JS.ACK.ASP_INBOX."+consumer+".1.1.1.1.0")
	}
	return append(subjects,
		"$JS.API.CONSUMER.INFO.ASP_INBOX."+victim, "$JS.API.CONSUMER.MSG.NEXT.ASP_INBOX."+victim, "$JS.API.CONSUMER.MSG.NEXT.ASP_INBOX.*",
		"$JS.API.CONSUMER.MSG.NEXT.ASP_ESCALATIONS.acme_com~buyers", "$JS.API.CONSUMER.INFO.ASP_ESCALATIONS.acme_com~buyers",
		"$JS.API.CONSUMER.MSG.NEXT.ASP_ESCALATIONS.*", "$JS.ACK.ASP_ESCALATIONS.acme_com~buyers.1.1.1.1.0",
		"$JS.API.CONSUMER.MSG.NEXT.ASP_TIMERS.brokers", "$JS.ACK.ASP_INBOX."+victim+".1.1.1.1.0", "$JS.ACK.ASP_INBOX.*.1.1.1.1.0",
		"$JS.ACK.ASP_TIMERS.brokers.1.1.1.1.0", "$JS.ACK._.x.ASP_INBOX."+victim+".1.1.1.1.0")
}

// TestHijackAcknowledges speaks about what another has been sent: with an acknowledgement one
// takes a message away, with +TERM for good, with +NXT one gets the next.
func TestHijackAcknowledges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	victim := w.Principal(alpha)
	js, err := jetstream.New(victim.Conn())
	testkit.Must(t, err)
	inbox, err := js.Consumer(t.Context(), api.InboxStream, alpha.Token())
	testkit.Must(t, err)
	m, err := inbox.Next(jetstream.FetchMaxWait(testkit.Patience)) // not acknowledged yet
	testkit.Must(t, err)
	ack := m.Reply()
	w.harmless(func() {
		for _, word := range []string{"", "+ACK", "-NAK", "+WPI", "+TERM", "+NXT", `+NXT {"batch":100}`} {
			for _, a := range []performatives.Agent{eve, beta} {
				p := w.Principal(a)
				nc, err := p.Dial(p.Login())
				testkit.Must(t, err)
				testkit.Must(t, nc.PublishRequest(ack, nc.NewRespInbox(), []byte(word)))
				if !testkit.Denied(t, nc, ack) {
					t.Errorf("%s says %q of alpha's message", a, word)
				}
				nc.Close()
				// The longer form, which has a domain and an account in it, where the token that
				// is the principal's own stands in the place of another word.
				own, err := p.Dial(p.Login())
				testkit.Must(t, err)
				testkit.Must(t, own.Publish("$JS.ACK.ASP_INBOX."+a.Token()+".ASP_INBOX."+alpha.Token()+".1.1.1.1.0", []byte(word)))
				testkit.Must(t, own.Flush())
				own.Close()
			}
		}
	})
	testkit.Must(t, m.DoubleAck(t.Context()))
}

// TestHijackReplies names the subjects of others as the place where its own answers go: of
// pulls, acknowledgements, acts and calls. A reply subject is not checked against permissions.
func TestHijackReplies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.Principal(eve)
	w.Principal(beta).Say(testkit.NewSession(), testkit.Invitation(eve)) // there is something in eve's inbox
	w.Principal(beta).Say(testkit.NewSession(), testkit.Invitation(eve))
	victim := w.Principal(alpha).Conn()
	// This much it can do: what the broker answers to eve, it can have shown to alpha, under a
	// name that nobody waits for. It is nothing of the deal.
	replies, err := victim.SubscribeSync("_INBOX." + alpha.Token() + ".x")
	testkit.Must(t, err)
	testkit.Must(t, victim.Flush())
	astray := foreignSubjects(eve, string(w.deal))
	w.harmless(func() {
		for n, reply := range astray {
			nc, err := p.Dial(p.Login()) // the server closes it for some of these
			testkit.Must(t, err)
			for subject, data := range map[string]string{
				api.Submit(eve, w.deal):                                        "{",
				api.Call(eve, api.SessionList.Name):                            "{}",
				api.Call(eve, api.SessionGet.Name):                             fmt.Sprintf(`{"sessionId":%q}`, w.deal),
				"$JS.API.CONSUMER.INFO.ASP_INBOX." + eve.Token():               "",
				"$JS.API.CONSUMER.MSG.NEXT.ASP_INBOX." + eve.Token():           `{"batch":1,"no_wait":true}`,
				"$JS.ACK.ASP_INBOX." + eve.Token() + ".1.1.1.1.0":              `+NXT {"batch":1,"no_wait":true}`,
				"$JS.ACK.ASP_INBOX." + eve.Token() + ".1.2.2.1.0":              "-NAK",
				fmt.Sprintf("$JS.ACK.ASP_INBOX.%s.1.%d.1.1.0", eve.Token(), n): "",
			} {
				testkit.Must(t, nc.PublishRequest(subject, reply, []byte(data)))
			}
			testkit.Must(t, nc.Flush())
			nc.Close()
		}
		// Answered behind them: what was before has been dealt with.
		want(t, "an outsider", p.Call(api.SessionGet.Name, fmt.Sprintf(`{"sessionId":%q}`, w.deal)), "unknown_session")
		testkit.Must(t, w.Server.Broker.Command.Healthy(t.Context()))
	}, eve)
	testkit.Must(t, victim.Flush())
	for n, _, err := replies.Pending(); n > 0; n-- {
		testkit.Must(t, err)
		if m, err := replies.NextMsg(testkit.Patience); err != nil || strings.Contains(string(m.Data), string(w.deal)) {
			t.Errorf("alpha is shown %s %v", m.Data, err)
		}
	}
	w.Principal(alpha).Say(w.deal, testkit.Fact("still here"))
}
