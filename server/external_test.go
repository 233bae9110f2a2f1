package server_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/natsserver"
)

// programs is where the nats-server program is built, if a test needs it.
var programs string

var program = sync.OnceValues(func() (string, error) { return natsserver.Build(programs) })

func TestMain(m *testing.M) {
	var err error
	if programs, err = os.MkdirTemp("", "parley"); err != nil {
		panic(err)
	}
	status := m.Run()
	if err := os.RemoveAll(programs); err != nil {
		panic(err)
	}
	os.Exit(status)
}

// external runs a nats-server process with what Config says for the data directory, and
// returns its address.
func external(t *testing.T, data string) (url string) {
	t.Helper()
	config, err := server.Config(data)
	must(t, err)
	server, err := program()
	must(t, err)
	return "nats://" + natsserver.Start(t, server, config)
}

// operator does the same in operator mode, with what the commands of Nsc make.
func operator(t *testing.T, data string) (url string) {
	t.Helper()
	script, err := server.Nsc(data)
	must(t, err)
	server, err := program()
	must(t, err)
	return "nats://" + natsserver.Start(t, server, natsserver.Nsc(t, script))
}

// configured are the options of a node at an external server.
func configured(t *testing.T) server.Options {
	t.Helper()
	data := t.TempDir()
	return server.Options{Data: data, NATS: external(t, data)}
}

// inOperatorMode are those of a node at one that operator runs.
func inOperatorMode(t *testing.T) server.Options {
	t.Helper()
	data := t.TempDir()
	return server.Options{Data: data, NATS: operator(t, data), NATSCreds: filepath.Join(data, server.CredsFile)}
}
