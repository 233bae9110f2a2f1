package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.yaml.in/yaml/v3"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

const deployed = "../../deploy/"

// refusals says what the program does not take of a command line, and of variables that set flags.
func refusals(args, variables []string) (faults []string) {
	cmd, rest, err := rootCommand().Find(args)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err != nil {
		faults = append(faults, fmt.Sprintf("parley %s: %v", strings.Join(args, " "), err))
	}
	for _, name := range unknownVariables(rootCommand(), variables) {
		faults = append(faults, "no flag is set by "+name)
	}
	return faults
}

func takes(t *testing.T, in string, args, variables []string) {
	t.Helper()
	for _, fault := range refusals(args, variables) {
		t.Errorf("%s: %s", in, fault)
	}
}

// TestTakes: a check that never fails proves nothing.
func TestTakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, variables []string }{
		{[]string{"serve", "--listens=0.0.0.0:4222"}, nil},
		{[]string{"serve", "--sync=never"}, nil},
		{[]string{"serve", "here"}, nil},
		{[]string{"serves"}, nil},
		{[]string{"serve"}, []string{"PARLEY_LISTENS"}},
	} {
		if len(refusals(c.args, c.variables)) == 0 {
			t.Errorf("%q with %q is taken", c.args, c.variables)
		}
	}
}

// A manifest is an object of Kubernetes, with what the tests look at.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Template struct {
			Spec struct{ Containers []container }
		}
	}
}

type container struct {
	Name, Image string
	Args        []string
	Env         []struct{ Name, Value string }

	StartupProbe   probe `yaml:"startupProbe"`
	LivenessProbe  probe `yaml:"livenessProbe"`
	ReadinessProbe probe `yaml:"readinessProbe"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

func rendered(t *testing.T, name string) (all []manifest) {
	t.Helper()
	for d := yaml.NewDecoder(bytes.NewReader(fileOf(t, "rendered/"+name))); ; {
		var m manifest
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
}

func fileOf(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(deployed + name)
	testkit.Must(t, err)
	return data
}

// TestChart: what the chart was rendered to starts this program with flags that it has, and NATS with a
// configuration that it reads. The chart's version is the program's.
func TestChart(t *testing.T) {
	for name, containers := range map[string]int{"single.yaml": 1, "cluster.yaml": 2} {
		seen := 0
		t.Setenv("ROUTES_PASSWORD", "letters4digits") // of the secret
		for _, m := range rendered(t, name) {
			for _, c := range m.Spec.Template.Spec.Containers {
				seen++
				if c.Name == "nats" {
					for _, v := range c.Env {
						t.Setenv(v.Name, strings.ReplaceAll(cmp.Or(v.Value, os.Getenv(v.Name)), "$(ROUTES_PASSWORD)", os.Getenv("ROUTES_PASSWORD")))
					}
				}
				if !strings.HasPrefix(c.Image, "parley:") {
					continue
				}
				if c.Image != "parley:"+api.Version {
					t.Errorf("%s: the image is %s, this is version %s", name, c.Image, api.Version)
				}
				var variables []string
				for _, v := range c.Env {
					variables = append(variables, v.Name)
				}
				takes(t, name, c.Args, variables)
			}
		}
		for _, m := range rendered(t, name) {
			if text, ok := m.Data["nats.conf"]; ok {
				reads := natsReads(t, certified(t, testkit.NewAuthority(t), text))
				if reads.TLSConfig == nil || reads.Cluster.TLSConfig == nil {
					t.Errorf("%s: NATS is in clear text", name)
				}
				if len(reads.Routes) != 3 || reads.ServerName != "parley-nats-0" || reads.Port != 4222 || reads.HTTPPort != 8222 || reads.Cluster.Password != "letters4digits" {
					t.Errorf("%s: NATS reads %d routes, the name %q, the ports %d and %d, the routes' user %q", name, len(reads.Routes), reads.ServerName, reads.Port, reads.HTTPPort, reads.Cluster.Username)
				}
			}
		}
		if seen != containers {
			t.Errorf("%s has %d containers, want %d", name, seen, containers)
		}
	}
}

// certified has a configuration of the chart read the files of the Secret nats.tlsSecret from where they are here.
func certified(t *testing.T, ca *testkit.Authority, conf string) string {
	t.Helper()
	cert, key := ca.Issue("nats")
	return strings.NewReplacer("/nats-tls/tls.crt", cert, "/nats-tls/tls.key", key, "/nats-tls/ca.crt", ca.File).Replace(conf)
}

// TestChartEncrypts: three NATS servers with the chart's configuration are a cluster, and whoever connects
// gets the certificate.
func TestChartEncrypts(t *testing.T) {
	var conf string
	for _, m := range rendered(t, "cluster.yaml") {
		conf += m.Data["nats.conf"]
	}
	ca := testkit.NewAuthority(t)
	conf = certified(t, ca, conf)
	var ports []int
	var routes []string
	for range 3 {
		address := testkit.FreeAddress(t)
		routes = append(routes, fmt.Sprintf("%q", "nats://route:password@"+address))
		_, port, err := net.SplitHostPort(address)
		testkit.Must(t, err)
		n, err := strconv.Atoi(port)
		testkit.Must(t, err)
		ports = append(ports, n)
	}
	t.Setenv("ROUTES_LOGIN", "{user: route, password: password}")
	t.Setenv("ROUTES", "["+strings.Join(routes, ", ")+"]")
	var servers []*natsserver.Server
	for i, port := range ports {
		o := natsReads(t, conf)
		o.ServerName, o.Host, o.Port, o.HTTPPort, o.StoreDir = fmt.Sprintf("parley-nats-%d", i), "127.0.0.1", -1, 0, t.TempDir()
		o.Cluster.Host, o.Cluster.Port, o.NoSigs = "127.0.0.1", port, true
		ns, err := natsserver.NewServer(o)
		testkit.Must(t, err)
		ns.Start()
		t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
		servers = append(servers, ns)
	}
	testkit.Eventually(t, "the servers are a cluster", func() bool {
		return !slices.ContainsFunc(servers, func(ns *natsserver.Server) bool { return ns.NumRoutes() < 2 })
	})
	text, err := os.ReadFile(ca.File)
	testkit.Must(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	trusted := errors.New("the certificate is trusted")
	for i, ns := range servers {
		_, err := nats.Connect(ns.ClientURL(), nats.Secure(&tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: pool, VerifyConnection: func(tls.ConnectionState) error { return trusted },
		}))
		if !errors.Is(err, trusted) {
			t.Errorf("a client: %v", err)
		}
		route, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ports[i]), &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool})
		testkit.Must(t, err)
		_, err = route.Read(make([]byte, 1))
		if alert, refused := errors.AsType[*net.OpError](err); !refused || !strings.Contains(alert.Error(), "certificate required") {
			t.Errorf("who joins without a certificate: %v", err)
		}
		route.Close()
	}
}

// TestProbes: a broker answers the probes that the chart has.
func TestProbes(t *testing.T) {
	t.Parallel()
	s, err := server.Start(t.Context(), server.Options{Data: t.TempDir(), Listen: "127.0.0.1:-1", Monitor: "127.0.0.1:0"})
	testkit.Must(t, err)
	t.Cleanup(func() { s.Close(t.Context()) })
	probes := 0
	for _, m := range rendered(t, "single.yaml") {
		for _, c := range m.Spec.Template.Spec.Containers {
			for _, probe := range []probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
				probes++
				answer, err := http.Get("http://" + s.MonitorAddr + probe.HTTPGet.Path)
				testkit.Must(t, err)
				if answer.Body.Close(); answer.StatusCode != http.StatusOK || probe.HTTPGet.Port != "monitor" {
					t.Errorf("%s of the port %s answers %s", probe.HTTPGet.Path, probe.HTTPGet.Port, answer.Status)
				}
			}
		}
	}
	if probes != 3 {
		t.Errorf("the chart has %d probes", probes)
	}
}

// natsReads is what a NATS server makes of a configuration beside what nats-config prints.
func natsReads(t *testing.T, conf string) *natsserver.Options {
	t.Helper()
	t.Setenv("POD_NAME", "parley-nats-0")
	dir := t.TempDir()
	own, err := server.Config(filepath.Join(dir, "keys"), 1)
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "parley.conf"), []byte(own), 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "nats.conf"), []byte(conf), 0o600))
	options, err := natsserver.ProcessConfigFile(filepath.Join(dir, "nats.conf"))
	testkit.Must(t, err)
	return options
}

// TestRendered: what is committed was rendered from this chart. `make chart` renders it.
func TestRendered(t *testing.T) {
	t.Parallel()
	var files []string
	testkit.Must(t, filepath.WalkDir(deployed+"chart", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			files = append(files, filepath.ToSlash(path))
		}
		return err
	}))
	var sums strings.Builder
	for i, path := range files {
		files[i] = strings.TrimPrefix(path, "../../")
	}
	slices.Sort(files)
	for _, name := range files {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(fileOf(t, strings.TrimPrefix(name, "deploy/"))), name)
	}
	want := fmt.Sprintf("# Rendered by make chart. Its sources: %x\n", sha256.Sum256([]byte(sums.String())))
	for _, name := range []string{"single.yaml", "cluster.yaml"} {
		if !bytes.HasPrefix(fileOf(t, "rendered/"+name), []byte(want)) {
			t.Errorf("deploy/rendered/%s is not of this chart: run make chart", name)
		}
	}
}

// TestCompose: the brokers of compose.yaml start with flags that there are, and what it mounts is there.
func TestCompose(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Image            string
			Command, Volumes []string
			Environment      map[string]string
		}
	}
	testkit.Must(t, yaml.Unmarshal(fileOf(t, "compose/compose.yaml"), &compose))
	brokers := 0
	for name, s := range compose.Services {
		if s.Image == "parley:"+api.Version {
			brokers++
			takes(t, "compose.yaml, "+name, s.Command, nil)
		}
		for _, volume := range s.Volumes {
			from, _, _ := strings.Cut(volume, ":")
			made := []string{"./keys", "./parley.conf", "../prometheus", "../grafana"}
			if _, err := os.Stat(deployed + "compose/" + from); strings.HasPrefix(from, ".") && !slices.Contains(made, from) && err != nil {
				t.Errorf("compose.yaml, %s: %v", name, err)
			}
		}
	}
	if brokers != 3 {
		t.Errorf("compose.yaml has %d brokers of version %s", brokers, api.Version)
	}
	if reads := natsReads(t, string(fileOf(t, "compose/nats.conf"))); reads.Port != 4222 {
		t.Errorf("NATS reads the port %d", reads.Port)
	}
	header, _, _ := strings.Cut(string(fileOf(t, "compose/compose.yaml")), "\nname:")
	for _, run := range regexp.MustCompile(`parley:[\d.]+ (\w.*?)(?: >|$)`).FindAllStringSubmatch(header, -1) {
		takes(t, "compose.yaml", strings.Fields(run[1]), nil)
	}
}

// TestUnit: the systemd unit starts the program with flags that there are.
func TestUnit(t *testing.T) {
	t.Parallel()
	unit := string(fileOf(t, "systemd/parley.service"))
	start := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/parley (.*)$`).FindStringSubmatch(unit)
	if start == nil {
		t.Fatal("the unit starts nothing")
	}
	takes(t, "parley.service", strings.Fields(start[1]), regexp.MustCompile(`PARLEY_[A-Z_]+`).FindAllString(unit, -1))
}
