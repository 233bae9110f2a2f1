package main

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/parley-asp/parley/broker/turns"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
)

// maxReplicas is the most that JetStream keeps of a stream.
const maxReplicas = 5

var errReplicas = fmt.Errorf("--replicas is 1 to %d", maxReplicas)

// fault is what is wrong with flags.
func fault(err error, flags ...string) error { return &server.Fault{Flags: flags, Err: err} }

// checkTogether checks what flags want of each other, and how much they may be.
func (s *serve) checkTogether() error {
	var faults []error
	found := func(wrong bool, err string, flags ...string) {
		if wrong {
			faults = append(faults, fault(errors.New(err), flags...))
		}
	}
	found((s.Embeddings.URL == "") != (s.Embeddings.Model == ""), "set --embeddings and --embeddings-model together or not at all", "embeddings", "embeddings-model")
	found((s.OIDC.Issuer == "") != (s.OIDC.Audience == ""), "set --oidc-issuer and --oidc-audience together or not at all: tokens for another service let nobody in", "oidc-issuer", "oidc-audience")
	found(s.Policy.ParkedTimeout > session.LongestDuration.Milliseconds(), fmt.Sprintf("--parked-timeout is 1ms to %s", session.LongestDuration), "parked-timeout")
	found(s.Claim < time.Millisecond || s.Claim > turns.LongestTimeout, fmt.Sprintf("--claim-timeout is 1ms to %s", turns.LongestTimeout), "claim-timeout")
	switch {
	case s.Replicas < 0 || s.Replicas > maxReplicas:
		faults = append(faults, fault(errReplicas, "replicas"))
	case s.Replicas > 1:
		found(s.NATS == "", fmt.Sprintf("--replicas %d needs a cluster at --nats: the embedded server keeps one", s.Replicas), "replicas")
	}
	if err := s.kit.complete(&s.Options); err != nil {
		faults = append(faults, fault(err, "test-clock"))
	}
	if quorum, all := s.Witnesses.Quorum, len(s.Witnesses.All); quorum < 0 || quorum > all {
		found(true, fmt.Sprintf("--witness-quorum %d: there are %d witnesses; name each by --witness", quorum, all), "witness-quorum", "witness")
	} else if err := s.Witnesses.Check(); err != nil {
		faults = append(faults, fault(fmt.Errorf("--witness: %w", err), "witness", "witness-quorum", "witness-timeout"))
	}
	return errors.Join(faults...)
}

// checkNames checks directories, URLs, hosts, and the name of the public log. URLs may have passwords, so no error quotes one.
func (s *serve) checkNames() error {
	var faults []error
	for _, one := range []struct{ flag, url string }{{"http-url", s.HTTPURL}, {"oidc-issuer", s.OIDC.Issuer}, {"oidc-audience", s.OIDC.Audience}, {"embeddings", s.Embeddings.URL}} {
		if u, err := url.Parse(one.url); one.url != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "") {
			faults = append(faults, fault(fmt.Errorf("--%s: want a URL such as https://parley.acme.com", one.flag), one.flag))
		}
	}
	for _, one := range s.HTTPOrigins {
		if !isOrigin(one) {
			faults = append(faults, fault(errors.New("--http-origins: want origins as browsers send them, such as https://acme.com or http://localhost:3000, without a path"), "http-origins"))
		}
	}
	for _, one := range s.DIDHosts {
		if u, err := url.Parse("https://" + one); err != nil || u.Host == "" || u.Host != one {
			faults = append(faults, fault(errors.New("--did-hosts: want hosts such as acme.com, without https:// and a path"), "did-hosts"))
		}
	}
	if s.Data == "" {
		faults = append(faults, fault(errors.New("--data: want a directory, such as "+defaultData), "data"))
	}
	if strings.Contains(s.LogOrigin, "+") || strings.ContainsFunc(s.LogOrigin, unicode.IsSpace) {
		faults = append(faults, fault(fmt.Errorf("--log-origin: want a name without spaces and +, not %q", s.LogOrigin), "log-origin"))
	}
	return errors.Join(faults...)
}

// isOrigin reports whether a browser can send this as an origin: in lower case, without a path or the scheme's own port.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme != "" && u.Hostname() != "" && strings.ToLower(u.Scheme+"://"+u.Host) == text &&
		u.Scheme+":"+u.Port() != "https:443" && u.Scheme+":"+u.Port() != "http:80"
}

// minCPU is less work than any act is.
const minCPU = time.Millisecond

// checkLimits refuses limits of nothing, and numbers that are none.
func checkLimits(flags *pflag.FlagSet) error {
	var faults []error
	for _, f := range keysOf(flags) {
		text := f.Value.String()
		if !strings.HasPrefix(f.Name, "limit-") || text == f.DefValue {
			continue
		}
		unlimited := "-1"
		n, err := strconv.ParseFloat(text, 64)
		if d, is := time.ParseDuration(text); err != nil && is == nil {
			unlimited, n = "-1s", d.Seconds()
		}
		switch most := performatives.MaxEnvelope; {
		case f.Name == "limit-bytes":
			if !(n >= 1 && n <= float64(most)) {
				faults = append(faults, fault(fmt.Errorf("--limit-bytes is 1 to %d", most), f.Name))
			}
			continue
		case f.Name == "limit-cpu" && n > 0 && n < minCPU.Seconds():
			faults = append(faults, fault(fmt.Errorf("--limit-cpu is at least %s, or -1s for unlimited", minCPU), f.Name))
		}
		if n != -1 && !(n > 0 && n <= math.MaxFloat64) { // NaN and infinity, too
			faults = append(faults, fault(fmt.Errorf("--%s is above 0, or %s for unlimited", f.Name, unlimited), f.Name))
		}
	}
	if n, err := flags.GetInt("shards"); err == nil && n == 0 { // for server.Options it is the default
		faults = append(faults, fault(server.ErrShardCount, "shards"))
	}
	if n, err := flags.GetInt("replicas"); err == nil && n == 0 && flags.Changed("replicas") { // for server.Options it is the store's
		faults = append(faults, fault(errReplicas, "replicas"))
	}
	return errors.Join(faults...)
}
