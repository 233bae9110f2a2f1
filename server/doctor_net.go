package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/internal/natslogin"
	"github.com/parley-asp/parley/server/embedded"
	"github.com/parley-asp/parley/server/login"
	"github.com/parley-asp/parley/store"
)

// serves reports whether a broker of this installation runs: it has the store open, or answers over
// HTTP with the key in Data.
func (e *examiner) serves(ctx context.Context) bool {
	if e.o.NATS == "" {
		return e.inUse(flock)
	}
	if e.o.HTTP == "" {
		return false
	}
	pair, err := natslogin.Seed(filepath.Join(e.o.Data, BrokerSeed))
	if err != nil {
		return false
	}
	own, err := pair.PublicKey()
	pair.Wipe()
	if err != nil {
		return false
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true} //nolint:gosec // only a public key is compared
	scheme := "http://"
	if e.o.TLS.Cert != "" {
		scheme = "https://"
		if pair, err := tls.LoadX509KeyPair(e.o.TLS.Cert, e.o.TLS.Key); err == nil {
			config.Certificates = []tls.Certificate{pair}
		}
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, examineWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+reachable(e.o.HTTP)+"/version", nil)
	if err != nil {
		return false
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close() //nolint:errcheck // read to its end or not
	var version struct {
		Broker string `json:"broker"`
	}
	return json.UnmarshalRead(http.MaxBytesReader(nil, answer.Body, 4<<10), &version) == nil && version.Broker == own
}

// reachable is where to reach a listener on this machine: one on all addresses is on loopback, too.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

// ports examines the addresses of the listeners.
func (e *examiner) ports() {
	held := map[string]string{} // by port, the flag of what was found free
	var free []net.Listener
	defer func() {
		for _, l := range free {
			l.Close() //nolint:errcheck // nobody connected
		}
	}()
	if flags := e.o.plain(); len(flags) > 0 {
		e.add(Warn, "port", "Set --tls-cert and --tls-key, unless a proxy in front of it encrypts.", "others can reach %s in plain text", strings.Join(flags, ", "))
	}
	for _, l := range e.o.listeners() {
		if l.address == "" || strings.HasSuffix(l.address, ":-1") {
			continue
		}
		_, port, _ := net.SplitHostPort(l.address) // what is none, Listen refuses
		listener, err := net.Listen("tcp", l.address)
		switch {
		case err == nil:
			free = append(free, listener)
			if port != "0" {
				held[port] = l.flag
			}
			e.add(OK, "port", "", "--%s %s is free", l.flag, l.address)
		case errors.Is(err, syscall.EADDRINUSE) && e.running:
			e.add(OK, "port", "", "--%s %s is in use by this installation, which runs", l.flag, l.address)
		case errors.Is(err, syscall.EADDRINUSE) && held[port] != "":
			e.add(Fail, "port", "Set --"+l.flag+" to another address.", "--%s %s is the address of --%s", l.flag, l.address, held[port])
		case errors.Is(err, syscall.EADDRINUSE):
			e.add(Fail, "port", "Stop the other process, or set --"+l.flag+" to another address.", "--%s %s is in use by another process", l.flag, l.address)
		default:
			e.add(Fail, "port", "Set --"+l.flag+" to an address of this machine that its user may listen on.", "--%s %s: %v", l.flag, l.address, err)
		}
	}
}

// collectWithin bounds what doctor waits for the collector of --otlp.
const collectWithin = 2 * time.Second

// collector asks the collector of --otlp for anything: what it answers does not count.
func (e *examiner) collector(ctx context.Context) {
	if e.o.OTLP.URL == "" || e.o.OTLP.Check() != nil {
		return // nothing to ask, or it was said
	}
	ctx, cancel := context.WithTimeout(ctx, collectWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, e.o.OTLP.URL, nil)
	if err == nil {
		var answer *http.Response
		if answer, err = http.DefaultTransport.RoundTrip(request); err == nil {
			err = answer.Body.Close()
		}
	}
	if err != nil {
		e.add(Warn, "otlp", "Start the collector, or set --otlp to where it is: until then it gets nothing, and the broker serves without it.", "%s does not answer: %v", e.o.OTLP.URL, err)
		return
	}
	e.add(OK, "otlp", "", "%s answers", e.o.OTLP.URL)
}

// server examines the NATS server: an external one, or that of a running broker.
func (e *examiner) server(ctx context.Context, stored bool) {
	url := e.o.NATS
	if url == "" {
		if !e.running {
			return
		}
		url = "nats://" + reachable(e.o.Listen)
	}
	nc := e.connect(url)
	if nc == nil {
		return
	}
	defer nc.Close()
	if err := store.CheckServer(nc.ConnectedServerVersion()); err != nil {
		e.add(Fail, "nats", "Upgrade every server of the cluster.", "%s: %v", url, err)
	} else {
		e.add(OK, "nats", "", "%s has version %s", url, nc.ConnectedServerVersion())
	}
	if most := nc.MaxPayload(); most < embedded.MaxPayload {
		e.add(Warn, "nats", "Set max_payload as 'parley nats-config' prints it.", "messages have at most %d bytes", most)
	}
	e.account(nc)
	ctx, cancel := context.WithTimeout(ctx, examineWithin)
	defer cancel()
	asked := e.now()
	found, err := store.Examine(ctx, nc)
	switch {
	case store.IsUnavailable(err) && !store.IsDisabled(err):
		e.add(Fail, "jetstream", "Start the NATS servers that are away: without a majority JetStream answers nothing.", "%v", err)
		return
	case err != nil:
		e.add(Fail, "jetstream", "Enable JetStream for the broker's account, as 'parley nats-config' prints it.", "%v", err)
		return
	}
	e.streams(found, stored)
	if !found.At.IsZero() && e.o.NATS != "" {
		e.clock("the NATS server", found.At, asked.Add(e.now().Sub(asked)/2))
	}
}

// connect logs in as the broker does.
func (e *examiner) connect(url string) *nats.Conn {
	file := filepath.Join(e.o.Data, BrokerLogin)
	if e.o.SharedKeys && e.o.NATS != "" {
		file = filepath.Join(e.o.Data, BrokerSeed)
	}
	how, err := e.o.credentials()
	if e.o.NATSCreds != "" { // which are read only when the server asks
		_, err = natslogin.Seed(e.o.NATSCreds)
	}
	if err == nil && how == nil && e.o.NATSOptions == nil {
		how, err = Options{NATSSeed: file}.credentials()
	}
	if err != nil {
		e.add(Fail, "login", "Copy the *.nk files of the installation, or set --creds, --nkey or --context.", "there is no login to %s: %v", url, err)
		return nil
	}
	how = append(append(how, e.o.NATSOptions...), e.tls(url)...)
	nc, err := nats.Connect(url, append(how, nats.Timeout(examineWithin), nats.NoReconnect(), nats.Name("parley doctor"))...)
	network, ok := errors.AsType[*net.OpError](err)
	dialing := ok && network.Op == "dial"
	switch {
	case err == nil:
		return nc
	case errors.Is(err, errOtherCertificate):
		e.add(Fail, "nats", "Set --tls-cert and --tls-key to the broker's. It reads new files within 10 s.", "%s: %v", url, err)
	case errors.Is(err, nats.ErrSecureConnWanted):
		e.add(Fail, "nats", "Start the broker with --tls-cert and --tls-key.", "%s: it runs without TLS", url)
	case WrongTLS(err, "--nats-ca") != "":
		e.add(Fail, "nats", WrongTLS(err, "--nats-ca"), "%s: %v", url, err)
	case !dialing && !errors.Is(err, nats.ErrNoServers) && !errors.Is(err, nats.ErrNoInfoReceived): // or nobody answers the login
		e.add(Fail, "login", "'parley nats-config --data "+e.o.Data+"' prints the configuration that the server needs.", "%s refuses the broker's login: %v", url, err)
	default:
		e.add(Fail, "nats", "Start the NATS server, or set --nats to where it is.", "%s cannot be reached: %v", url, err)
	}
	return nil
}

var errOtherCertificate = errors.New("it has another certificate than --tls-cert")

// tls is how to trust a server: an embedded one has the certificate of this installation.
func (e *examiner) tls(url string) []nats.Option {
	own, err := tls.LoadX509KeyPair(e.o.TLS.Cert, e.o.TLS.Key)
	if e.o.NATS != "" || err != nil { // which certificates has said
		return e.o.TLS.Client(url)
	}
	return []nats.Option{nats.Secure(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own},
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection does
		VerifyConnection: func(c tls.ConnectionState) error {
			if !c.PeerCertificates[0].Equal(own.Leaf) {
				return errOtherCertificate
			}
			return nil
		},
	})}
}

// account examines whom the server takes the broker for.
func (e *examiner) account(nc *nats.Conn) {
	var info struct {
		Data struct {
			Account     string         `json:"account"`
			Permissions map[string]any `json:"permissions"`
		} `json:"data"`
	}
	m, err := nc.Request("$SYS.REQ.USER.INFO", nil, examineWithin)
	if err == nil {
		err = json.Unmarshal(m.Data, &info)
	}
	const do = "Give the broker a user without permissions in an account of its own, as 'parley nats-config' prints it."
	switch {
	case err != nil:
		e.add(Warn, "login", do, "the server does not say which account the broker is in: %v", err)
	case len(info.Data.Permissions) > 0:
		e.add(Warn, "login", do, "the broker's user in account %s may not use every subject", info.Data.Account)
	case info.Data.Account == "$G" && !e.o.Dev:
		e.add(Warn, "login", do, "the broker is in the default account, with everybody who logs in to that")
	default:
		e.add(OK, "login", "", "the broker is let in to account %s", info.Data.Account)
	}
	e.logins()
}

// inUse reports whether another process keeps the data directory from being locked.
func (e *examiner) inUse(flock func(*os.File) error) bool {
	file, err := os.Open(filepath.Join(e.o.Data, "lock"))
	if err != nil {
		return false
	}
	err = flock(file)
	unlock(file)
	return errors.Is(err, ErrInUse)
}

// logins examines the other keys of a broker that authorizes the logins to an external server.
func (e *examiner) logins() {
	if e.o.NATS == "" || slices.ContainsFunc(seeds, func(name string) bool {
		_, err := os.Stat(filepath.Join(e.o.Data, name))
		return err != nil
	}) {
		return // openKeys would make what is missing
	}
	if e.inUse(flockShared) {
		e.add(Fail, "login", "Leave out --nats.", "a broker with a NATS server of its own has %s open", e.o.Data)
		return
	}
	keys, err := openKeys(e.o.Data)
	if err != nil {
		return // said already
	}
	mode, err := keys.mode(e.o)
	if err != nil || !mode.servesLogins() {
		return
	}
	own := []struct {
		status        Status
		account, what string
		key           string
		pair          nkeys.KeyPair
	}{
		{Fail, login.CalloutAccount, "nobody can log in", calloutSeed, keys.callout},
		{Warn, login.SystemAccount, "a removed principal stays connected until its next login", systemSeed, keys.system},
	}
	if e.running && mode == configured { // whose logins the broker answers, if the server takes the answers for its own
		own = append(own, own[0])
		own[2].account, own[2].key, own[2].pair = login.OperatorsAccount, OperatorSeed, keys.operator
	}
	for _, one := range own {
		how, err := mode.login(keys, e.o, one.account, one.pair)
		if err == nil {
			var nc *nats.Conn
			if nc, err = nats.Connect(e.o.NATS, append(append(e.o.TLS.Client(e.o.NATS), e.o.NATSOptions...), how, nats.Timeout(examineWithin), nats.NoReconnect())...); err == nil {
				nc.Close()
			}
		}
		if err != nil {
			e.add(one.status, "login", "Give the server what 'parley nats-config --data "+e.o.Data+"' prints.", "%s is not let in to account %s, so %s: %v", one.key, one.account, one.what, err)
		}
	}
}
