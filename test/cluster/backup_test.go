package cluster_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/client/audit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/store/backup"
	"github.com/parley-asp/parley/test/testkit"
)

// A backup of a cluster, taken while agents negotiate and session consumers come and go, restores to
// one server. It is complete before that answers for the first time.
func TestBackup(t *testing.T) {
	t.Parallel()
	backups(t, 1)
}

func backups(t *testing.T, times int) {
	w := newWorld(t)
	w.broker()
	w.connects()
	m := w.opens(3)
	m.goesOn(5)
	stop, churned := make(chan struct{}), make(chan int)
	go func() { churned <- m.churns(stop) }()
	var files []*os.File
	for n := range times {
		nc, leave, err := server.Store(server.Options{Data: w.data, NATS: w.URL()})
		testkit.Must(w, err)
		file, err := os.Create(filepath.Join(w.TempDir(), "parley.tar"))
		testkit.Must(w, err)
		w.Cleanup(func() { file.Close() })
		if _, err = backup.Write(w.ctx, nc, nil, file); err != nil {
			w.Errorf("backup %d: %v", n, err)
		} else {
			files = append(files, file)
		}
		leave()
	}
	close(stop)
	w.Logf("%d session consumers came and went", <-churned)
	sessions := len(m.sessions)
	m.ends()
	for _, file := range files {
		w.restores(file, sessions)
	}
}

// Where too few servers run, a backup says of which stream.
func TestBackupWithoutMajority(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.broker()
	for _, s := range w.Servers[1:] {
		s.Kill()
	}
	nc, leave, err := server.Store(server.Options{Data: w.data, NATS: w.Servers[0].URL()})
	testkit.Must(w, err)
	defer leave()
	file, err := os.Create(filepath.Join(w.TempDir(), "parley.tar"))
	testkit.Must(w, err)
	defer file.Close()
	if _, err := backup.KeyRecord(t.Context(), nc); err != nil && !errors.Is(err, backup.ErrUnavailable) { // a follower may answer
		t.Errorf("the keys without a majority: %v", err)
	}
	testkit.Eventually(w, "the stream is known to have no leader", func() bool {
		_, err = backup.Write(t.Context(), nc, nil, file)
		if !errors.Is(err, backup.ErrUnavailable) || !strings.Contains(err.Error(), "stream ") {
			t.Fatalf("without a majority: %v", err)
		}
		return strings.Contains(err.Error(), " has no leader")
	})
}

// churns makes session consumers and removes them until it is told to stop, and returns how many.
func (m *market) churns(stop <-chan struct{}) (made int) {
	inboxes, err := m.js.Stream(m.ctx, api.InboxStream)
	testkit.Must(m, err)
	for {
		select {
		case <-stop:
			return made
		default:
		}
		for _, s := range m.sessions {
			c, err := client.Do(m.ctx, m.beta, api.SessionConsumer, api.AskConsumer{Session: s.ID()})
			if err == nil {
				made++
				err = inboxes.DeleteConsumer(m.ctx, c.Name)
			}
			if err != nil {
				m.Errorf("session consumer: %v", err)
				return made
			}
		}
	}
}

// restores holds a backup against what it has to be.
func (w *world) restores(file *os.File, sessions int) {
	w.Helper()
	keys, err := server.Keys(w.data)
	testkit.Must(w, err)
	data := w.TempDir()
	for name, seed := range keys {
		testkit.Must(w, server.WriteSecret(data+"/"+name, seed))
	}
	nc, stop, err := server.Store(server.Options{Data: data, Listen: "127.0.0.1:-1"})
	testkit.Must(w, err)
	_, err = file.Seek(0, io.SeekStart)
	testkit.Must(w, err)
	_, err = backup.Restore(w.ctx, nc, file, backup.Options{Replicas: 1})
	testkit.Must(w, err)
	stop()
	n, err := server.Start(w.ctx, server.Options{Data: data, Listen: "127.0.0.1:-1"})
	testkit.Must(w, err)
	operator, err := client.ConnectOperator(w.ctx, n.URL, client.LoginFile(data+"/"+server.OperatorSeed))
	testkit.Must(w, err)
	defer operator.Close()
	ids, err := operator.AuditedSessions(w.ctx)
	testkit.Must(w, err)
	if len(ids) != sessions {
		w.Errorf("%d sessions are restored, want %d", len(ids), sessions)
	}
	for _, id := range ids {
		w.inOrder(operator, id)
	}
	testkit.Must(w, n.Close(w.ctx))
}

// inOrder audits a session at once: nothing of it is left to be applied.
func (w *world) inOrder(operator *client.Operator, id performatives.SessionID) {
	w.Helper()
	entries, err := operator.Transcript(w.ctx, id)
	testkit.Must(w, err)
	held, err := operator.Held(w.ctx, id)
	testkit.Must(w, err)
	faults, err := audit.Session(entries, held, modes.All())
	if err != nil || len(faults) > 0 || len(entries) == 0 {
		w.Errorf("session %s, %d entries: %v %v", id, len(entries), faults, err)
	}
}
