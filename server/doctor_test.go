package server_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/testkit"
)

// found are the findings of a check, as lines.
func found(t *testing.T, o server.Options, check string) string {
	t.Helper()
	var lines []string
	for _, f := range server.Examine(t.Context(), o) {
		if f.Status != server.OK && f.Do == "" && f.Check != "keys" {
			t.Errorf("%s: it does not say what to do", f.What)
		}
		if f.Check == check {
			lines = append(lines, string(f.Status)+" "+f.What)
		}
	}
	return strings.Join(lines, "\n")
}

func wants(t *testing.T, o server.Options, check, want string) {
	t.Helper()
	if got := found(t, o, check); !strings.Contains(got, want) {
		t.Errorf("%s: %q, want %q", check, got, want)
	}
}

// configuredServer is an external server with parley's logins, and the data directory of a broker.
func configuredServer(t *testing.T) (*testkit.ServerProcess, server.Options) {
	t.Helper()
	data := t.TempDir()
	config, err := server.Config(data, testkit.Shards)
	testkit.Must(t, err)
	config = strings.Replace(config, "./nats-data", t.TempDir(), 1)
	p := testkit.StartServerProcess(t, config)
	return p, server.Options{Data: data, NATS: p.URL(), HTTP: testkit.FreeAddress(t)}
}

// An external server: before the first start, while a broker runs, with keys, streams and
// versions that are wrong, and gone.
func TestDoctorExternal(t *testing.T) {
	t.Parallel()
	p, o := configuredServer(t)
	wants(t, o, "nats", "ok "+p.URL()+" has version")
	wants(t, o, "streams", "ok serve makes "+api.SessionsStream)
	n, err := server.Start(t.Context(), o)
	testkit.Must(t, err)
	wants(t, o, "port", "ok --http "+o.HTTP+" is in use by this installation")
	wants(t, o, "login", "ok the broker is let in to account ASP")
	wants(t, o, "streams", "ok their settings are as they should be")
	wants(t, o, "clock", "ok it agrees with that of the NATS server")
	replicated := o
	replicated.Replicas = 3
	wants(t, replicated, "streams", "warn "+api.SessionsStream+" has 1 replicas, not 3")

	nc, stop, err := server.Store(o)
	testkit.Must(t, err)
	js, err := jetstream.New(nc)
	testkit.Must(t, err)
	timers, err := js.Stream(t.Context(), api.IndexStream)
	testkit.Must(t, err)
	config := timers.CachedInfo().Config
	config.MaxBytes = 1 << 20
	_, err = js.UpdateStream(t.Context(), config)
	testkit.Must(t, err)
	wants(t, o, "streams", "fail "+api.IndexStream+": it has a limit of messages or bytes")
	testkit.Must(t, n.Close(t.Context()))

	apart := o
	apart.Data = t.TempDir()
	testkit.Must(t, os.CopyFS(apart.Data, os.DirFS(o.Data)))
	testkit.Must(t, os.Remove(filepath.Join(apart.Data, "issuer.nk")))
	n, err = server.Start(t.Context(), apart)
	testkit.Must(t, err)
	wants(t, apart, "login", "fail operator.nk is not let in to account OPERATORS, so nobody can log in")
	testkit.Must(t, n.Close(t.Context()))
	testkit.Must(t, os.WriteFile(filepath.Join(apart.Data, server.CheckpointFile), []byte("xx"), 0o600))
	wants(t, apart, "log", "log-checkpoint is no checkpoint")
	if _, err := server.Start(t.Context(), apart); err == nil || !strings.Contains(err.Error(), "log-checkpoint is damaged") {
		t.Errorf("a damaged checkpoint: %v", err)
	}

	foreign := o
	foreign.Data = t.TempDir()
	testkit.Must(t, os.CopyFS(foreign.Data, os.DirFS(o.Data)))
	testkit.Must(t, os.Remove(filepath.Join(foreign.Data, server.CheckpointFile)))
	another := t.TempDir()
	_, err = server.Config(another, testkit.Shards)
	testkit.Must(t, err)
	seed, err := os.ReadFile(filepath.Join(another, server.BrokerSeed))
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(filepath.Join(foreign.Data, server.BrokerSeed), seed, 0o600))
	wants(t, foreign, "keys", "fail the broker's key is lost: the store's newest key is ")

	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: api.RestoringStream, Subjects: []string{"restoring"}})
	testkit.Must(t, err)
	wants(t, o, "streams", "fail "+store.ErrRestoring.Error())
	testkit.Must(t, js.DeleteStream(t.Context(), api.RestoringStream))
	testkit.Must(t, js.DeleteStream(t.Context(), api.CaseLogStream))
	wants(t, o, "streams", "fail the store has lost "+api.CaseLogStream)
	stop()

	old := o
	old.NATS = "nats://" + olderServer(t, p.Address)
	wants(t, old, "nats", "this one is 2.11.9")
	other := o
	other.Data = t.TempDir()
	_, err = server.Config(other.Data, testkit.Shards)
	testkit.Must(t, err)
	wants(t, other, "login", "fail "+p.URL()+" refuses the broker's login")
	other.Data = t.TempDir()
	wants(t, other, "login", "fail there is no login")
	if files, err := os.ReadDir(other.Data); err != nil || len(files) > 0 {
		t.Errorf("keys were made: %v %v", files, err)
	}
	testkit.Must(t, os.Rename(filepath.Join(o.Data, "callout.nk"), filepath.Join(o.Data, "lost.nk")))
	wants(t, o, "keys", "lacks callout.nk")
	p.Stop()
	wants(t, o, "nats", "fail "+p.URL()+" cannot be reached")
}

// JetStream that the broker's account lacks is to be enabled.
func TestDoctorWithoutJetStream(t *testing.T) {
	t.Parallel()
	o := server.Options{Data: t.TempDir(), HTTP: testkit.FreeAddress(t)}
	config, err := server.Config(o.Data, testkit.Shards)
	testkit.Must(t, err)
	config = strings.Replace(config, "./nats-data", t.TempDir(), 1)
	o.NATS = testkit.StartServerProcess(t, regexp.MustCompile(`(?m)^ *jetstream: .*$`).ReplaceAllString(config, "")).URL()
	findings := server.Examine(t.Context(), o)
	if n := slices.IndexFunc(findings, func(f server.Finding) bool { return f.Check == "jetstream" }); n < 0 || !strings.Contains(findings[n].Do, "Enable JetStream") {
		t.Errorf("%+v", findings)
	}
}

// olderServer is where a server can be reached that says an older version of itself.
func olderServer(t *testing.T, address string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	nc, err := net.Dial("tcp", address)
	testkit.Must(t, err)
	hello := make([]byte, 4<<10)
	n, err := nc.Read(hello)
	testkit.Must(t, err)
	_, version, _ := bytes.Cut(hello[:n], []byte(`"version":"`))
	version, _, _ = bytes.Cut(version, []byte(`"`))
	nc.Close()
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", address)
			if err != nil {
				in.Close()
				return
			}
			go func() {
				defer in.Close()
				// A server says its version again once the client is let in.
				for lines := bufio.NewReader(out); ; {
					line, err := lines.ReadBytes('\n')
					if bytes.HasPrefix(line, []byte("INFO ")) {
						line = bytes.Replace(line, version, []byte("2.11.9"), 1)
					}
					if _, failed := in.Write(line); err != nil || failed != nil {
						return
					}
				}
			}()
			go func() {
				defer out.Close()
				io.Copy(out, in) //nolint:errcheck // one of them hangs up
			}()
		}
	}()
	return listener.Addr().String()
}

// A store that root has restored, or whose mode says no, is not the broker's to write.
func TestDoctorStoreNotWritable(t *testing.T) {
	t.Parallel()
	o := server.Options{Data: t.TempDir(), Listen: "127.0.0.1:-1"}
	testkit.Must(t, runs(t, o))
	found, err := filepath.Glob(filepath.Join(o.Data, "nats", "jetstream", "*", "streams", api.SessionsStream))
	testkit.Must(t, err)
	testkit.Must(t, os.Chmod(found[0], 0o500)) //nolint:gosec // a directory
	wants(t, o, "data", "fail the broker's user cannot write "+found[0])
	testkit.Must(t, os.Chmod(found[0], 0o700)) //nolint:gosec // a directory
	for _, f := range server.Examine(t.Context(), o) {
		if f.Status == server.Fail {
			t.Errorf("%+v", f)
		}
	}
}

// A server with logins of its own lets the broker in to the account of everybody, or has no JetStream.
func TestDoctorOwnLogins(t *testing.T) {
	t.Parallel()
	o := server.Options{Data: t.TempDir(), NATSOptions: []nats.Option{}}
	o.NATS = testkit.StartServerProcess(t, "jetstream { store_dir: \""+t.TempDir()+"\" }").URL()
	wants(t, o, "login", "warn the broker is in the default account")
	o.NATS = testkit.StartServerProcess(t, "").URL()
	wants(t, o, "jetstream", "fail ")
}

// Certificates that expire soon, have expired, are not valid yet, and are none.
func TestDoctorCertificates(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	o := server.Options{Data: t.TempDir(), TLS: ca.issues("server")}
	o.TLS.CA = ca.File
	for after, want := range map[time.Duration]string{
		0: "warn " + o.TLS.Cert + ": CN=server expires on", 2 * time.Hour: "fail " + o.TLS.Cert + ": CN=server expired on", -2 * time.Hour: "fail " + o.TLS.CA + ": CN=authority of a test is valid only from",
	} {
		o.Now = func() time.Time { return time.Now().Add(after) }
		wants(t, o, "certificate", want)
	}
	o.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	wants(t, o, "clock", "fail this machine's clock and that of the file system differ by 2h")
	o.Now = nil
	testkit.Must(t, os.Chmod(o.TLS.Key, 0o640)) //nolint:gosec // that is the fault
	wants(t, o, "certificate", "warn others on this machine can read "+o.TLS.Key+": mode 0640")
	o.TLS.Key = ca.issues("other").Key
	wants(t, o, "certificate", "fail tls: private key does not match")
	o.TLS.CA = o.TLS.Key
	testkit.Must(t, os.WriteFile(o.TLS.CA, []byte("nothing"), 0o600))
	wants(t, o, "certificate", "fail "+o.TLS.CA+" has no certificate")
}

// A directory that takes no file, and an address of another machine.
func TestDoctorDirectory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "linux" { // where even root can write none
		wants(t, server.Options{Data: "/proc/self"}, "data", "fail no file can be made")
	}
	o := server.Options{Data: t.TempDir(), Listen: "127.0.0.1:0", Websocket: ":0", HTTP: "192.0.2.1:80"}
	wants(t, o, "port", "fail --http 192.0.2.1:80")
	wants(t, o, "port", "warn others can reach --http, --websocket in plain text")
	o.HTTPURL = "https://parley.acme.com"
	wants(t, o, "port", "warn others can reach --websocket in plain text")
	before, err := os.ReadDir(o.Data)
	testkit.Must(t, err)
	if len(before) > 0 {
		t.Errorf("files are left: %v", before)
	}
}

// Key files that the broker cannot read, each told once.
func TestDoctorUnreadableKeys(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		server.BrokerKeysFile: server.BrokerKeysFile,
		server.BrokerSecret:   server.BrokerSecret + " does not contain a secret",
		server.BrokerSeed:     server.BrokerSeed + " does not contain an nkey seed",
	} {
		o := server.Options{Data: t.TempDir()}
		_, err := server.Config(o.Data, 1) // makes the keys
		testkit.Must(t, err)
		testkit.Must(t, os.WriteFile(filepath.Join(o.Data, file), []byte("{"), 0o600))
		got := found(t, o, "keys")
		if !strings.Contains(got, want) || strings.Count(got, "fail ") != 1 {
			t.Errorf("of a broken %s it says %q", file, got)
		}
	}
}

// Keys that the group can read: a fault, unless they are mounted, as a Secret of Kubernetes is.
func TestDoctorMountedKeys(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // it has other permissions
	}
	o := server.Options{Data: t.TempDir()}
	_, err := server.Config(o.Data, 1) // makes the keys
	testkit.Must(t, err)
	seed := filepath.Join(o.Data, server.BrokerSeed)
	testkit.Must(t, os.Chmod(seed, 0o440)) //nolint:gosec // that is the fault
	wants(t, o, "keys", "fail others on this machine can read "+seed+": mode 0440")
	if os.Geteuid() != 0 {
		return // only root may give files away
	}
	testkit.Must(t, os.Chown(seed, 12345, 12345))
	wants(t, o, "keys", "warn the group can read "+seed+", as it is mounted: mode 0440")
	testkit.Must(t, os.Chmod(seed, 0o444)) //nolint:gosec // that is the fault
	wants(t, o, "keys", "fail others on this machine can read "+seed+": mode 0444")
}

// A collector of --otlp that answers, if only by a refusal, and one that is not there.
func TestDoctorCollector(t *testing.T) {
	t.Parallel()
	collector := httptest.NewServer(http.NotFoundHandler())
	o := server.Options{Data: t.TempDir()}
	o.OTLP.URL = collector.URL
	wants(t, o, "otlp", "ok "+collector.URL+" answers")
	collector.Close()
	wants(t, o, "otlp", "warn "+collector.URL+" does not answer: ")
}

// Two listeners that are to have one address.
func TestDoctorSharedAddress(t *testing.T) {
	t.Parallel()
	o := server.Options{Data: t.TempDir(), HTTP: testkit.FreeAddress(t)}
	o.Listen = o.HTTP
	wants(t, o, "port", "fail --listen "+o.Listen+" is the address of --http")
}
