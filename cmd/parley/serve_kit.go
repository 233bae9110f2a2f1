package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/pflag"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
)

// A kit is what tests of other programs need of 'parley serve': to be told where it serves, and a clock
// that they move.
type kit struct {
	readyJSON, testClock bool
	ahead                atomic.Int64 // of the machine's clock, in nanoseconds
}

func (k *kit) flags(flags *pflag.FlagSet) {
	flags.BoolVar(&k.readyJSON, "ready-json", false, "print a line of JSON on standard output once the broker serves: version, pid, nats, websocket, http, macp, monitor, key")
	flags.BoolVar(&k.testClock, "test-clock", false, "let lines on standard input such as 'advance 24h' move the broker's clock; each is answered by a line of JSON; with --dev only")
}

// complete has the broker go by the clock that is moved.
func (k *kit) complete(o *server.Options) error {
	if !k.testClock {
		return nil
	}
	if !o.Dev {
		return errors.New("--test-clock is for tests: set --dev, too")
	}
	o.Now = k.now
	return nil
}

func (k *kit) now() time.Time { return time.Now().Add(time.Duration(k.ahead.Load())) }

// A ready broker, as --ready-json says it.
type ready struct {
	Version   string            `json:"version"`
	PID       int               `json:"pid"`
	NATS      string            `json:"nats"`
	Websocket string            `json:"websocket,omitzero"`
	HTTP      string            `json:"http,omitzero"`
	MACP      string            `json:"macp,omitzero"`
	Monitor   string            `json:"monitor,omitzero"`
	Key       performatives.Key `json:"key"` // verifies receipts and transcripts
}

// serves says where a broker serves, and then moves its clock as it is told.
func (k *kit) serves(ctx context.Context, n *server.Server, scheme string, in io.Reader, out io.Writer) error {
	if k.readyJSON {
		r := ready{Version: api.Version, PID: os.Getpid(), NATS: n.URL, Websocket: n.WebsocketURL, MACP: n.MACPAddr, Key: n.Broker.Command.Key()}
		if n.HTTPAddr != "" {
			r.HTTP = scheme + "://" + n.HTTPAddr
		}
		if n.MonitorAddr != "" {
			r.Monitor = "http://" + n.MonitorAddr
		}
		if err := printLine(out, r); err != nil {
			return err
		}
	}
	if k.testClock {
		go k.obey(ctx, in, out, n.LookAtDeadlines)
	}
	return nil
}

// A moved clock is the answer to a line.
type moved struct {
	Now   string `json:"now,omitzero"`
	Error string `json:"error,omitzero"`
}

const mostAdvance = 366 * 24 * time.Hour

// obey reads lines until their end, and has sessions look at their deadlines.
func (k *kit) obey(ctx context.Context, in io.Reader, out io.Writer, look func(context.Context) error) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var m moved
		if err := k.advance(ctx, lines.Text(), look); err != nil {
			m.Error = err.Error()
		} else {
			m.Now = api.Timestamp(k.now())
		}
		if printLine(out, m) != nil {
			return
		}
	}
}

func (k *kit) advance(ctx context.Context, line string, look func(context.Context) error) error {
	what, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	by, err := time.ParseDuration(rest)
	if what != "advance" || err != nil || by < 0 || by > mostAdvance {
		return fmt.Errorf("want 'advance DURATION', such as 'advance 24h', at most %s", mostAdvance)
	}
	k.ahead.Add(int64(by))
	return look(ctx)
}

func printLine(out io.Writer, value any) error {
	data, err := json.Marshal(value)
	if err == nil {
		_, err = out.Write(append(data, '\n'))
	}
	return err
}
