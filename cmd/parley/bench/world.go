package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
)

// A world holds the targets, their processes, and the agents that use them.
type world struct {
	options   *Options
	sync      string
	dir       string
	targets   []*target
	processes []*process
	operators []*client.Operator
}

// openWorld starts a broker for each name; rawName starts the store alone.
func openWorld(ctx context.Context, o *Options, sync string, names ...string) (w *world, err error) {
	w = &world{options: o, sync: sync}
	defer func() {
		if err != nil {
			w.close(&err)
		}
	}()
	if w.dir, err = os.MkdirTemp(o.Dir, "parley-bench-"); err != nil {
		return w, err
	}
	o.say("sync %s: starting %s", sync, strings.Join(names, " and "))
	for _, name := range names {
		open := w.openBroker
		switch name {
		case rawName:
			open = w.openRaw
		case overHTTP, hosted, overEvents:
			open = w.openHTTP
		}
		r, err := open(ctx, name)
		if err != nil {
			return w, err
		}
		w.targets = append(w.targets, r)
	}
	for n := range o.Pairs {
		var both [2]*person
		for i, name := range []string{"agent://acme.com/buyer-%d", "agent://widgets.co/seller-%d"} {
			if both[i], err = newPerson(performatives.Agent(fmt.Sprintf(name, n))); err != nil {
				return w, err
			}
		}
		for _, r := range w.targets {
			var there [2]*party
			for i, p := range both {
				if there[i], err = r.join(ctx, p); err != nil {
					return w, err
				}
			}
			r.pairs = append(r.pairs, there)
		}
	}
	return w, nil
}

// openBroker starts the broker, or several brokers on an external server, or uses
// the running one.
func (w *world) openBroker(ctx context.Context, name string) (*target, error) {
	r, operator, url, err := w.startBroker(ctx, name)
	if err != nil {
		return nil, err
	}
	r.join = func(ctx context.Context, p *person) (*party, error) {
		if _, err := operator.AddAgent(ctx, api.Card{Agent: p.Agent, Key: p.signer.Key(), LoginKeys: []performatives.Key{p.logs.Key()}}); err != nil {
			return nil, err
		}
		there, err := r.enter(p, url)
		if err != nil {
			return nil, err
		}
		stream, err := there.inbox(ctx)
		if err != nil {
			return nil, err
		}
		return there, there.listen(ctx, stream)
	}
	return r, nil
}

// enter connects a person that is registered.
func (r *target) enter(p *person, url string) (*party, error) {
	return r.connect(p, url, p.login(), nats.CustomInboxPrefix("_INBOX."+p.Agent.Token()))
}

// startBroker starts a broker, of which the operator registers the agents. args are further flags of serve.
func (w *world) startBroker(ctx context.Context, name string, args ...string) (r *target, operator *client.Operator, url string, err error) {
	o, data := w.options, filepath.Join(w.dir, name)
	r = &target{name: name, encode: signed}
	r.submit = request(func(from, _ *party, id performatives.SessionID) string { return api.Submit(from.Agent, id) }, acceptedByBroker)
	url = o.URL
	login := client.Unsigned()
	var options []client.Option
	switch {
	case url != "":
		r.pids = o.PIDs
		options = append(options, client.NATS(nats.RetryOnFailedConnect(false)))
		if o.Operator != "" {
			login = client.LoginFile(o.Operator)
		}
	case o.Brokers == 0:
		url, err = w.serve(ctx, r, name, append([]string{"--data", data, "--listen", "127.0.0.1:0", "--sync", w.sync}, args...)...)
	default:
		if url, err = w.serveNATS(ctx, r, name+"-nats", data); err != nil {
			return r, nil, url, err
		}
		for i := range o.Brokers {
			if _, err = w.serve(ctx, r, fmt.Sprintf("%s-%d", name, i), "--data", data, "--nats", url); err != nil {
				return r, nil, url, err
			}
		}
	}
	if err != nil {
		return r, nil, url, err
	}
	if o.URL == "" {
		login = client.LoginFile(filepath.Join(data, server.OperatorSeed))
	}
	if operator, err = client.ConnectOperator(ctx, url, append(options, login)...); err == nil {
		w.operators = append(w.operators, operator)
	}
	return r, operator, url, err
}

// serve starts a broker, whose cost counts for a target.
func (w *world) serve(ctx context.Context, r *target, name string, args ...string) (url string, err error) {
	return w.start(ctx, r, name, append([]string{"serve", "--http", "", "--shards", strconv.Itoa(w.options.shards())}, args...))
}

func (o Options) shards() int { return max(1, o.Shards) }

// serveNATS starts a NATS server with the configuration of `parley nats-config`.
func (w *world) serveNATS(ctx context.Context, r *target, name, data string) (url string, err error) {
	text, err := server.Config(data, w.options.shards())
	if err != nil {
		return "", err
	}
	for _, change := range [][2]string{
		{`store_dir: "./nats-data"`, fmt.Sprintf("store_dir: %q", filepath.Join(data, "nats"))},
		{"sync_interval: always", fmt.Sprintf("sync_interval: %q", w.sync)},
		{"system_account:", "listen: \"127.0.0.1:-1\"\nsystem_account:"},
	} {
		if !strings.Contains(text, change[0]) {
			return "", fmt.Errorf("the configuration has no %s", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	config := filepath.Join(data, "nats-server.conf")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return "", err
	}
	return w.start(ctx, r, name, append(append([]string{}, NATSServerCommand...), config))
}

func (w *world) start(ctx context.Context, r *target, name string, args []string) (url string, err error) {
	p, err := w.options.start(ctx, w.dir, name, args...)
	if p != nil {
		w.processes = append(w.processes, p)
	}
	if err != nil {
		return "", err
	}
	r.pids, r.http = append(r.pids, p.cmd.Process.Pid), p.http
	return p.url, nil
}

// The raw target and its stream.
const (
	rawName   = "raw"
	rawStream = "RAW"
)

func rawSubject(to performatives.Agent, id string) string {
	return "raw." + to.Token() + ".inbox." + id
}

// openRaw starts the NATS server of the raw target, with a stream like that of
// the transcripts.
func (w *world) openRaw(ctx context.Context, name string) (*target, error) {
	r := &target{name: name, encode: signed}
	r.submit = request(func(_, to *party, id performatives.SessionID) string { return rawSubject(to.Agent, string(id)) }, acceptedByStore)
	data := filepath.Join(w.dir, name)
	url, err := w.serveNATS(ctx, r, name+"-nats", data)
	if err != nil {
		return nil, err
	}
	key, err := server.ReadSeed(filepath.Join(data, server.BrokerLogin))
	if err != nil {
		return nil, err
	}
	login, err := nkeyLogin(key)
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(url, login)
	if err != nil {
		return nil, err
	}
	r.conns = append(r.conns, nc)
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: rawStream, Subjects: []string{"raw.*.inbox.*"}, Storage: jetstream.FileStorage,
		DenyDelete: true, DenyPurge: true, AllowDirect: true, MaxConsumers: 1 << 20,
	}); err != nil {
		return nil, err
	}
	r.join = func(ctx context.Context, p *person) (*party, error) {
		if _, err := js.CreateConsumer(ctx, rawStream, jetstream.ConsumerConfig{
			Durable: p.Agent.Token(), FilterSubject: rawSubject(p.Agent, "*"), AckPolicy: jetstream.AckExplicitPolicy,
		}); err != nil {
			return nil, err
		}
		there, err := r.connect(p, url, login)
		if err != nil {
			return nil, err
		}
		return there, there.listen(ctx, rawStream)
	}
	return r, nil
}

// newPerson makes an agent and its key.
func newPerson(a performatives.Agent) (*person, error) {
	signer, err := performatives.NewKey()
	if err != nil {
		return nil, err
	}
	login, err := performatives.NewKey()
	return &person{Agent: a, signer: signer, logs: login}, err
}

func nkeyLogin(k nkeys.KeyPair) (nats.Option, error) {
	public, err := k.PublicKey()
	return nats.Nkey(public, k.Sign), err
}

// close stops every process and removes the stores.
func (w *world) close(err *error) {
	for _, r := range w.targets {
		r.leave()
	}
	for _, operator := range w.operators {
		*err = errors.Join(*err, operator.Close())
	}
	for _, p := range slices.Backward(w.processes) { // brokers before their NATS server
		*err = errors.Join(*err, p.stop())
	}
	if w.dir != "" {
		*err = errors.Join(*err, os.RemoveAll(w.dir))
	}
}
