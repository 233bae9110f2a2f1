package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/pflag"
)

// maxReplicas is the most that JetStream keeps of a stream.
const maxReplicas = 5

// checkPlaces checks where the broker listens, and how many replicas it has: faults that a start finds only later.
func (s *serve) checkPlaces() error {
	for _, l := range []struct {
		flag, address string
		least         int // -1 listens on any free port
	}{
		{"listen", s.Listen, -1}, {"websocket", s.Websocket, -1}, {"http", s.HTTP, 0}, {"macp", s.MACP, 0}, {"monitor", s.Monitor, 0},
	} {
		if l.address == "" && (l.flag != "listen" || s.NATS != "" || s.context != "") {
			continue
		}
		_, port, err := net.SplitHostPort(l.address)
		if err != nil {
			return fmt.Errorf("--%s: want HOST:PORT, such as 127.0.0.1:4222, not %q", l.flag, l.address)
		}
		number, err := strconv.Atoi(port)
		if err != nil && l.least == 0 { // it may have a name
			number, err = net.LookupPort("tcp", port)
		}
		if err != nil || number < l.least || number > 65535 {
			return fmt.Errorf("--%s %s: %q is not a port", l.flag, l.address, port)
		}
	}
	if s.Replicas < 0 || s.Replicas > maxReplicas {
		return fmt.Errorf("--replicas is 1 to %d", maxReplicas)
	}
	return nil
}

// checkNames checks URLs, and the name of the public log. URLs may have passwords, so no error quotes one.
func (s *serve) checkNames() error {
	for flag, text := range map[string]string{"http-url": s.HTTPURL, "oidc-issuer": s.OIDC.Issuer, "oidc-audience": s.OIDC.Audience, "embeddings": s.Embeddings.URL} {
		if u, err := url.Parse(text); text != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "") {
			return fmt.Errorf("--%s: want a URL such as https://parley.acme.com", flag)
		}
	}
	for one := range strings.SplitSeq(s.NATS, ",") {
		if one = strings.TrimSpace(one); !strings.Contains(one, "://") {
			one = "nats://" + one
		}
		if u, err := url.Parse(one); s.NATS != "" && (err != nil || u.Host == "") {
			return errors.New("--nats: want a URL such as nats://nats.example.com:4222, or several with commas between them")
		}
	}
	if strings.Contains(s.LogOrigin, "+") || strings.ContainsFunc(s.LogOrigin, unicode.IsSpace) {
		return fmt.Errorf("--log-origin: want a name without spaces and +, not %q", s.LogOrigin)
	}
	return nil
}

// checkLimits refuses limits of nothing.
func checkLimits(flags *pflag.FlagSet) error {
	for _, f := range keysOf(flags) {
		text := f.Value.String()
		if !strings.HasPrefix(f.Name, "limit-") || text == f.DefValue {
			continue
		}
		n, err := strconv.ParseFloat(text, 64)
		if text == "0s" || err == nil && (n == 0 || n < 0 && n != -1) {
			return fmt.Errorf("--%s is above 0, or -1 for unlimited", f.Name)
		}
	}
	return nil
}
