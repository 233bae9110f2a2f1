package server

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/natslogin"
)

// A Finding is one thing that Examine looked at.
type Finding struct {
	Status Status `json:"status"`
	Check  string `json:"check"`
	What   string `json:"what"`
	Do     string `json:"do,omitzero"` // what the operator can do about it
}

// A Status of a Finding. Fail means that the broker does not start, or that it loses or refuses
// something.
type Status string

// The statuses.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "fail"
)

// examineWithin bounds what Examine waits for one server.
const examineWithin = 5 * time.Second

// An examiner collects findings.
type examiner struct {
	o        Options
	now      func() time.Time
	running  bool // a broker of this installation serves
	lost     bool // the broker's key is, and it was said
	findings []Finding
}

func (e *examiner) add(status Status, check, do, what string, args ...any) {
	what = natslogin.Redact(fmt.Sprintf(what, args...), e.o.NATS)
	e.findings = append(e.findings, Finding{status, check, what, natslogin.Redact(do, e.o.NATS)})
}

// Examine looks for what is wrong with the installation that Start would run with these options,
// whether a broker runs or not. It changes nothing: to measure the disk it writes a file of 4 KiB in
// Data, and removes it. Findings have no secrets.
func Examine(ctx context.Context, o Options) []Finding {
	e := &examiner{o: o, now: o.Now}
	if e.now == nil {
		e.now = time.Now
	}
	e.add(OK, "version", "", "parley %s", api.Version)
	e.running = e.serves(ctx)
	store := e.files()
	e.certificates()
	e.ports()
	e.collector(ctx)
	e.server(ctx, store)
	return e.findings
}
