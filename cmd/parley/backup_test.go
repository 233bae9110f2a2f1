package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/store/backup"
	"github.com/parley-asp/parley/test/testkit"
)

// Issue 4: a backup that is taken while the broker works restores to a store in which all is in
// order: what was accepted when the backup began is there, and nobody is sent again what was
// read before.
func TestBackupWhileRunning(t *testing.T) {
	t.Parallel()
	w := newStore(t)
	buyer, seller := w.Client("agent://acme.com/buyer"), w.Client("agent://widgets.co/seller")
	invite := func() *client.Session {
		s, err := buyer.Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{seller.Agent()}, Purpose: "busy"})
		testkit.Must(w, err)
		_, err = seller.Session(s.ID()).Accept(w.Ctx, "inv")
		testkit.Must(w, err)
		return s
	}
	read := invite()
	inbox := func(shards int) jetstream.Consumer {
		c, err := w.js.Consumer(w.Ctx, api.InboxStreamOf(seller.Agent(), shards), seller.Agent().Token())
		testkit.Must(w, err)
		return c
	}
	m, err := inbox(1).Next()
	testkit.Must(w, err)
	testkit.Must(w, m.DoubleAck(w.Ctx))

	var acts atomic.Int64
	enough := make(chan struct{})
	var talking sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		talking.Go(func() {
			for s := invite(); ; {
				if _, err := s.Observe(w.Ctx, "the time", nil); err != nil {
					t.Errorf("observing: %v", err)
					return
				}
				if acts.Add(1) == 100 {
					close(enough)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	<-enough
	file := filepath.Join(t.TempDir(), "parley.tar")
	before := acts.Load()
	if said, ok := w.parley("backup", file, "--nats", w.URL, "--data", w.Data); !ok {
		t.Fatal(said)
	}
	after := acts.Load()
	close(stop)
	talking.Wait()
	t.Logf("%d acts accepted before the backup, %d while it was taken", before, after-before)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup is %v, %v; it holds keys", info.Mode(), err)
	}

	was := w.Server.Broker.Command.Key()
	for shards, restore := range map[int][]string{1: {"restore", file}, 4: {"streams", "reshard", file, "--shards", "4"}} {
		again := filepath.Join(t.TempDir(), "again")
		if said, ok := w.parley(append(restore, "--data", again)...); !ok {
			t.Fatal(said)
		}
		w.starts(t, testkit.Options{Data: again, Shards: shards})
		if w.Server.Broker.Command.Key() != was {
			t.Error("the restored broker has another key")
		}
		said, ok := w.verify(auditWait)
		if n := strings.Count(said, "ok  "); !ok || n != 6 {
			t.Errorf("%s: %d of 6 sessions are in order:\n%s", restore, n, said)
		}
		entries := 0
		for line := range strings.Lines(said) {
			if fields := strings.Fields(line); fields[0] == "ok" {
				n, err := strconv.Atoi(fields[2])
				testkit.Must(w, err)
				entries += n
			}
		}
		if others := 4 + 2 + 4*2; int64(entries-others) < before {
			t.Errorf("%s: %d acts are restored; %d were accepted before the backup", restore, entries-others, before)
		}
		m, err = inbox(shards).Next()
		testkit.Must(w, err)
		if m.Subject() == api.Inbox(seller.Agent(), read.ID()) {
			t.Errorf("%s: what was read comes again", restore)
		}
	}
}

// Issue 4: a store that was made without an archive gets one by a restore. What was over moves there then,
// with its bytes; what was open goes on where it was; nothing else can make the store so.
func TestRestoreWithArchive(t *testing.T) {
	t.Parallel()
	w := newStore(t) // its one session is paused
	over := map[performatives.SessionID][]byte{}
	buyer, seller := w.Client("agent://acme.com/buyer"), w.Client("agent://widgets.co/seller")
	const deals = 3
	for range deals {
		s, err := buyer.Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{seller.Agent()}, Purpose: "soon over"})
		testkit.Must(w, err)
		_, err = seller.Session(s.ID()).Accept(w.Ctx, "inv")
		testkit.Must(w, err)
		_, err = s.Close(w.Ctx, client.Closing{Outcome: performatives.Completed})
		testkit.Must(w, err)
		over[s.ID()] = w.last(api.SessionsStream, api.Session(s.ID())).Data
	}
	file := filepath.Join(t.TempDir(), "parley.tar")
	if said, ok := w.parley("backup", file, "--nats", w.URL, "--data", w.Data); !ok {
		t.Fatal(said)
	}
	policy := archive.Policy{After: 100 * time.Millisecond}
	plain, archived := filepath.Join(t.TempDir(), "plain"), filepath.Join(t.TempDir(), "archived")
	for _, args := range [][]string{{"--data", plain}, {"--data", archived, "--archive"}} {
		if said, ok := w.parley(append([]string{"restore", file}, args...)...); !ok {
			t.Fatal(said)
		}
	}
	if _, err := server.Start(w.Ctx, server.Options{Data: plain, Listen: "127.0.0.1:-1", Archive: policy}); !errors.Is(err, store.ErrNoArchive) {
		t.Errorf("restored without --archive: %v, want %v", err, store.ErrNoArchive)
	}
	w.starts(t, testkit.Options{Data: archived, Archive: policy})
	s, err := w.js.Stream(w.Ctx, api.SessionsStream)
	testkit.Must(w, err)
	testkit.Eventually(w, "the archive has all sessions but one", func() bool {
		info, err := s.Info(w.Ctx)
		testkit.Must(w, err)
		return info.State.NumSubjects == 1
	})
	said, ok := w.verify(auditWait)
	if n := strings.Count(said, "ok  "); !ok || n != deals+1 {
		t.Errorf("%d of %d sessions are in order:\n%s", n, deals+1, said)
	}
	for id, last := range over {
		if said, ok := w.parley("session", "export", string(id), "--url", w.URL, "--data", w.Data); !ok || !strings.HasSuffix(said, string(last)+"\n") {
			t.Errorf("session %s: what comes out of the archive does not end with its last entry: %s", id, said)
		}
	}
	if _, err := s.GetLastMsgForSubject(w.Ctx, api.Session(w.deal)); err != nil {
		t.Errorf("the paused session: %v", err)
	}

	// What is in the archive, and the list of it, go into a backup and come out of it.
	again := filepath.Join(t.TempDir(), "parley.tar")
	if said, ok := w.parley("backup", again, "--nats", w.URL, "--data", w.Data); !ok {
		t.Fatal(said)
	}
	w.Down()
	data := filepath.Join(t.TempDir(), "again")
	if said, ok := w.parley("restore", again, "--data", data); !ok {
		t.Fatal(said)
	}
	w.starts(t, testkit.Options{Data: data, Archive: policy})
	said, ok = w.verify(auditWait)
	if n := strings.Count(said, "ok  "); !ok || n != deals+1 {
		t.Errorf("%d of %d sessions of the restored archive are in order:\n%s", n, deals+1, said)
	}
}

// A backup that is not whole is found out before anything is restored, and nothing is written over.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	w := newStore(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "parley.tar")
	if said, ok := w.parley("backup", file, "--nats", w.URL, "--data", w.Data); !ok {
		t.Fatal(said)
	}
	whole, err := os.ReadFile(file)
	testkit.Must(w, err)
	damage := func(name string, change func([]byte) []byte) string {
		name = filepath.Join(dir, name)
		testkit.Must(w, os.WriteFile(name, change(bytes.Clone(whole)), 0o600))
		return name
	}
	transcripts := bytes.Index(whole, []byte("streams/"+api.SessionsStream+"/00000001")) + 512 + 100
	key := bytes.Index(whole, []byte("keys/broker.nk")) + 512 + 10
	settings := bytes.Index(whole, []byte("streams/"+api.SessionsStream+"/config.json"))
	retention := settings + bytes.Index(whole[settings:], []byte(`"retention"`)) + 15
	end := bytes.LastIndex(whole, []byte("PaxHeaders.0/end.json")) &^ 511
	zipped := func(b []byte) []byte {
		var to bytes.Buffer
		z := gzip.NewWriter(&to)
		_, err := z.Write(b)
		testkit.Must(w, errors.Join(err, z.Close()))
		return to.Bytes()
	}
	for _, c := range []struct{ file, data, want string }{
		{damage("short.tar", func(b []byte) []byte { return b[:len(b)-4096] }), "new", "not a complete backup"},
		{damage("cut.tar", func(b []byte) []byte { return b[:transcripts] }), "new", "not a complete backup"},
		{damage("flipped.tar", func(b []byte) []byte { b[transcripts] ^= 1; return b }), "new", "a chunk of " + api.SessionsStream + " is damaged"},
		{damage("key.tar", func(b []byte) []byte { b[key] ^= 1; return b }), "new", "keys/broker.nk is damaged"},
		{damage("settings.tar", func(b []byte) []byte { b[retention] ^= 1; return b }), "new", "streams/" + api.SessionsStream + "/config.json is damaged"},
		{damage("empty.tar", func([]byte) []byte { return nil }), "new", "truncated; missing: manifest.json, end.json"},
		{damage("endless.tar", func(b []byte) []byte { return b[:end] }), "new", "truncated; missing: end.json"},
		{damage("header.tar", func(b []byte) []byte { b[end] ^= 1; return b }), "new", "damaged after streams/"},
		{damage("text.tar", func([]byte) []byte { return bytes.Repeat([]byte("text"), 256) }), "new", "it is no tar"},
		{damage("parley.tar.gz", zipped), "new", "it is compressed; gunzip it first"},
		{damage("parley.tar.age", func([]byte) []byte { return []byte("age-encryption.org/v1\n") }), "new", "decrypt it with age first"},
	} {
		if said, ok := w.parley("restore", c.file, "--data", filepath.Join(dir, c.data)); ok || !strings.Contains(said, c.want) {
			t.Errorf("%s: done %t, said %q, want %q", filepath.Base(c.file), ok, said, c.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
			t.Fatalf("%s: something was restored", c.file)
		}
	}
	if said, ok := w.parley("restore", file, "--check", "--data", filepath.Join(dir, "new")); !ok {
		t.Error(said)
	}
	if said, ok := w.parley("restore", file, "--data", w.Data); ok || !strings.Contains(said, server.ErrInUse.Error()) {
		t.Errorf("over the store of a broker: %t %s", ok, said)
	}
	if said, ok := w.parley("restore", file, "--nats", w.URL, "--data", w.Data); ok || !strings.Contains(said, backup.ErrRunning.Error()) {
		t.Errorf("over a server: %t %s", ok, said)
	}
}

// At another server a data directory gets the keys that it lacks, keeps its logins, and has no other broker's key.
func TestRestoreElsewhere(t *testing.T) {
	t.Parallel()
	w := newStore(t)
	file := filepath.Join(t.TempDir(), "parley.tar")
	if said, ok := w.parley("backup", file, "--nats", w.URL, "--data", w.Data); !ok {
		t.Fatal(said)
	}
	was := w.Server.Broker.Command.Key()
	o := testkit.Configured(t)
	seed, operator := filepath.Join(o.Data, server.BrokerSeed), filepath.Join(o.Data, server.OperatorSeed)
	restore := []string{"restore", file, "--nats", o.NATS, "--data", o.Data}
	testkit.Must(t, os.Remove(operator))
	if said, ok := w.parley(restore...); ok || !strings.Contains(said, "broker.nk: it is of another broker") || !strings.Contains(said, "another --data") {
		t.Errorf("beside another broker's key: %t %s", ok, said)
	}
	if _, err := os.Stat(operator); err == nil {
		t.Error("a restore that was refused has written a key")
	}
	testkit.Must(t, os.Remove(seed))
	said, ok := w.parley(restore...)
	if !ok || !strings.Contains(said, "keys written: broker.nk, operator.nk\n") ||
		!strings.Contains(said, "kept, other than in the backup: broker.login.nk, callout.nk, issuer.nk, system.nk\n") {
		t.Fatalf("it says: %t %s", ok, said)
	}
	w.starts(t, o)
	if w.Server.Broker.Command.Key() != was {
		t.Error("the restored broker has another key")
	}
	if said, ok := w.verify(auditWait); !ok || strings.Count(said, "ok  ") != 1 {
		t.Errorf("its session is not in order: %s", said)
	}
}

// Two backups in the same second have two names.
func TestBackupNames(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Date(2026, 3, 7, 14, 30, 0, 0, time.UTC)
	for _, want := range []string{"parley-20260307T143000Z.tar", "parley-20260307T143000Z_2.tar", "parley-20260307T143000Z_3.tar"} {
		name := destination(dir, now)
		if filepath.Base(name) != want {
			t.Errorf("%s, want %s", name, want)
		}
		testkit.Must(t, os.WriteFile(name, nil, 0o600))
	}
}
