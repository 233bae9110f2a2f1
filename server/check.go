package server

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/parley-asp/parley/api"
)

// A Fault is why an option cannot be used, or not with others.
type Fault struct {
	Flags []string // of 'parley serve', without --
	Err   error
}

func (f *Fault) Error() string { return f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// The faults that Check finds.
var (
	ErrShardCount    = fmt.Errorf("--shards is 1 to %d", api.MaxShards)
	ErrNotLoopback   = errors.New("--dev has no logins, so it listens on loopback only")
	ErrSharedAddress = errors.New("two listeners cannot have one address")
	ErrNATSURL       = errors.New("--nats: want a URL such as nats://nats.example.com:4222, or several with commas between them")
)

// Check refuses options that exclude each other, and values that are out of range. Each error that it joins is a *[Fault].
func (o Options) Check() error {
	var faults []error
	found := func(err error, flags ...string) {
		if err != nil {
			faults = append(faults, &Fault{flags, err})
		}
	}
	faults = append(faults, o.checkListeners()...)
	found(o.checkNATS(), "nats", "context")
	_, err := o.signIn()
	found(err, "sign-in", "http-url", "dev")
	found(o.OTLP.Check(), "otlp", "otlp-sample")
	if o.Shards != 0 {
		found(CheckShards(o.Shards), "shards")
	}
	found(o.TLS.check(o.NATS != ""), "tls-cert", "tls-key", "tls-ca")
	return errors.Join(faults...)
}

// A listens is the flag of a listener and its address.
type listens struct{ flag, address string }

// listeners are those that a start opens.
func (o Options) listeners() (all []listens) {
	all = []listens{{"http", o.HTTP}, {"macp", o.MACP}, {"monitor", o.Monitor}}
	if o.NATS == "" {
		all = append(all, listens{"listen", o.Listen}, listens{"websocket", o.Websocket})
	}
	return all
}

// Addresses are those at which a start listens, each with its flag.
func (o Options) Addresses() (all []string) {
	for _, l := range o.listeners() {
		if l.address != "" {
			all = append(all, "--"+l.flag+" "+l.address)
		}
	}
	return all
}

// listenable tries the addresses of a new installation: a start that fails there would leave keys behind.
func (o Options) listenable() error {
	if _, err := os.Stat(filepath.Join(o.Data, BrokerSeed)); err == nil {
		return nil
	}
	for _, l := range o.listeners() {
		if port, err := l.port(); err != nil || port <= 0 || l.flag == "monitor" { // which listens already
			continue
		}
		listener, err := net.Listen("tcp", l.address)
		if err == nil {
			err = listener.Close()
		}
		if err != nil {
			return fmt.Errorf("--%s: %w", l.flag, err)
		}
	}
	return nil
}

// checkListeners refuses what is no address, what others can reach under --dev, and an address that two listeners have.
func (o Options) checkListeners() (faults []error) {
	var before []listens
	for _, l := range o.listeners() {
		if l.address == "" && l.flag != "listen" {
			continue
		}
		port, err := l.port()
		if err != nil {
			faults = append(faults, &Fault{[]string{l.flag}, err})
			continue
		}
		if o.Dev && !l.loopback() {
			faults = append(faults, &Fault{[]string{l.flag, "dev"}, fmt.Errorf("--%s %s: %w", l.flag, l.address, ErrNotLoopback)})
		}
		if port <= 0 {
			continue // any port that is free
		}
		for _, other := range before {
			if l.collides(other) {
				faults = append(faults, &Fault{[]string{l.flag, other.flag}, fmt.Errorf("--%s %s and --%s %s: %w", other.flag, other.address, l.flag, l.address, ErrSharedAddress)})
			}
		}
		before = append(before, l)
	}
	return faults
}

// port is the number of the port. Of NATS it has no name, and -1 is any one, as 0 is.
func (l listens) port() (int, error) {
	_, text, err := net.SplitHostPort(l.address)
	if err != nil {
		return 0, fmt.Errorf("--%s: want HOST:PORT, such as 127.0.0.1:4222, not %q", l.flag, l.address)
	}
	least := 0
	number, err := strconv.Atoi(text)
	if l.flag == "listen" || l.flag == "websocket" {
		least = -1
	} else if err != nil {
		number, err = net.LookupPort("tcp", text)
	}
	if err != nil || number < least || number > 65535 {
		return 0, fmt.Errorf("--%s %s: %q is not a port", l.flag, l.address, text)
	}
	return number, nil
}

// host is an address, "" for all of this machine's.
func (l listens) host() string {
	host, _, _ := net.SplitHostPort(l.address) // port has looked
	if host == "localhost" {
		return "127.0.0.1"
	}
	if ip := net.ParseIP(host); ip != nil {
		if ip.IsUnspecified() {
			return ""
		}
		return ip.String()
	}
	return host
}

// collides reports whether two listeners want the same port at one address.
func (l listens) collides(other listens) bool {
	mine, _ := l.port() // of both it was looked at
	theirs, _ := other.port()
	return mine == theirs && (l.host() == other.host() || l.host() == "" || other.host() == "")
}

func (l listens) loopback() bool {
	ip := net.ParseIP(l.host())
	return ip != nil && ip.IsLoopback()
}

// plain are the listeners that others reach in plain text. That of --monitor has no TLS, and is for an operator's network.
func (o Options) plain() (flags []string) {
	for _, l := range o.listeners() {
		proxied := l.flag == "http" && (len(o.HTTPProxies) > 0 || strings.HasPrefix(o.HTTPURL, "https://"))
		if o.TLS.Cert == "" && l.address != "" && l.flag != "monitor" && !proxied && !l.loopback() {
			flags = append(flags, "--"+l.flag)
		}
	}
	return flags
}

// checkNATS refuses what the client of NATS would take for a host. URLs may have passwords, so no error quotes one.
func (o Options) checkNATS() error {
	for one := range strings.SplitSeq(o.NATS, ",") {
		if one = strings.TrimSpace(one); !strings.Contains(one, "://") {
			one = "nats://" + one
		}
		u, err := url.Parse(one)
		if o.NATS != "" && (err != nil || u.Host == "" || !natsSchemes[u.Scheme]) {
			return ErrNATSURL
		}
	}
	return nil
}

var natsSchemes = map[string]bool{"nats": true, "tls": true, "ws": true, "wss": true}

// CheckShards refuses a number of shards that no store can have: ErrShardCount.
func CheckShards(n int) error {
	if n < 1 || n > api.MaxShards {
		return ErrShardCount
	}
	return nil
}
