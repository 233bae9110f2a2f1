package testkit

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/server"
)

// A BrokerProcess is a node in a process of its own.
type BrokerProcess struct {
	*Process
	URL      string // where principals connect
	HTTPAddr string // if it serves HTTP
}

// ProcessOptions say what a broker process runs.
type ProcessOptions struct {
	Data     string
	Listen   string // host:port of an embedded server, "" is a free port
	NATS     string // URL of a server elsewhere instead
	HTTP     string // host:port, "" is none
	Monitor  string // host:port, "" is none
	Dev      bool
	Replicas int
	Archive  archive.Policy
	Ahead    time.Duration // of the machine's clock is the broker's
}

// processOptions has ProcessOptions in the environment, in JSON.
const processOptions = "PARLEY_TESTKIT_OPTIONS"

// StartBrokerProcess starts a broker in a process of its own; it serves when this returns.
func StartBrokerProcess(t testing.TB, o ProcessOptions) *BrokerProcess {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:-1"
	}
	data, err := json.Marshal(o)
	Must(t, err)
	p, ready, err := start(t, nil, "broker", "", processOptions+"="+string(data))
	Must(t, err)
	url, http, _ := strings.Cut(ready, " ")
	return &BrokerProcess{p, url, http}
}

// DieAt has the process kill itself when an act reaches a failpoint. Acts that were accepted
// before do not count.
func (p *BrokerProcess) DieAt(point string) {
	p.t.Helper()
	p.Tell("die " + point)
}

// SetClock sets the broker's clock apart from the machine's.
func (p *BrokerProcess) SetClock(ahead time.Duration) {
	p.t.Helper()
	p.Tell("clock " + ahead.String())
}

// brokerProcess runs a node until its parent is gone or kills it.
func brokerProcess() error {
	var o ProcessOptions
	if err := json.Unmarshal([]byte(os.Getenv(processOptions)), &o); err != nil {
		return err
	}
	log, err := zap.NewDevelopment(zap.IncreaseLevel(zap.WarnLevel))
	if err != nil {
		return err
	}
	var ahead atomic.Int64
	ahead.Store(int64(o.Ahead))
	n, err := server.Start(context.Background(), server.Options{
		Data: o.Data, Listen: o.Listen, NATS: o.NATS, HTTP: o.HTTP, Monitor: o.Monitor, Dev: o.Dev, Replicas: o.Replicas, Shards: Shards, Archive: o.Archive, Log: log,
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
	})
	if err != nil {
		return err
	}
	fmt.Println(strings.TrimSpace(n.URL + " " + n.HTTPAddr))
	for in := bufio.NewScanner(os.Stdin); in.Scan(); fmt.Println(in.Text()) {
		switch what, rest, _ := strings.Cut(in.Text(), " "); what {
		case "die":
			dieAt(n, rest)
		case "clock":
			d, err := time.ParseDuration(rest)
			if err != nil {
				return err
			}
			ahead.Store(int64(d))
		default:
			return fmt.Errorf("told %q", in.Text())
		}
	}
	return nil
}

func dieAt(n *server.Server, point string) {
	var begun atomic.Bool // what is done until then is for acts before
	n.Broker.Command.AtFailpoints(func(at string) {
		if at == broker.Failpoints()[0] {
			begun.Store(true)
		}
		if at == point && begun.Load() {
			syscall.Kill(os.Getpid(), syscall.SIGKILL) //nolint:errcheck // nobody is left to hear of it
			select {}
		}
	})
}
