// Package demo plays negotiations between real agents: each has its own key,
// connection and inbox, and says its line of a script once it has received what the
// line answers. The demo starts a broker with logins and signatures, or uses a running one.
//
//	report, err := demo.Run(ctx, demo.Options{Out: os.Stdout})
//	if err != nil {
//		return err // there was no broker to play on
//	}
//	fmt.Println(report.OK)
//
// The scripts are in patterns: npayload's six negotiation patterns with their own terms, one
// session in each of the modes bilateral/1, convergent/1 and binding/1, and one over each of
// MCP, A2A and MACP, with the client library that others use. Besides them two negotiators
// haggle, and one buyer chooses between three sellers: what these say is for their policies
// to decide, so their scripts hold the policies.
//
// Invariants:
//
//   - An act is sent by its own agent, after that agent has received the entry before it.
//   - Every transcript is verified offline, with the broker's public key, after the
//     last scene. A broker that the demo started has stopped by then.
package demo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
)

// Options say what to play, on which broker, and what to print. The zero Options
// start a broker, play the six patterns, and print nothing.
type Options struct {
	URL      string        // NATS address of the broker to play on; "" starts one
	Face     string        // one of Faces; default NATS
	HTTP     string        // with URL and a Face other than NATS: URL of that broker's HTTP
	MACP     string        // with URL and Face MACP: host:port of that broker's MACP
	Operator nkeys.KeyPair // of that broker; nil under --dev
	Mode     string        // one of Choices; default the first
	Open     Opener        // shows a deal while the broker that was started still serves; nil shows none
	Keep     string        // directory for the transcripts and the started broker's data; "" removes them

	Out   io.Writer // nil prints nothing
	Style render.Style
	Quiet bool // print only the summary
}

// A Report is the result of the demo.
type Report struct {
	Broker performatives.Key `json:"broker"` // its public key
	Scenes []Result          `json:"scenes"`
	OK     bool              `json:"ok"` // every scene ended as expected and verifies
}

// Run plays the scenes one after the other. The error means that they could not be
// played; faults of a scene are in its Result.
func Run(ctx context.Context, o Options) (Report, error) {
	o.Face = cmp.Or(o.Face, NATS)
	choices := Choices(o.Face)
	o.Mode = cmp.Or(o.Mode, choices[0])
	if !slices.Contains(choices, o.Mode) {
		return Report{}, fmt.Errorf("unknown mode %q; over %s the modes are %s", o.Mode, o.Face, strings.Join(choices, ", "))
	}
	list, err := scenes(o.Face, o.Mode)
	if err != nil {
		return Report{}, err
	}
	return run(ctx, o, list)
}

func run(ctx context.Context, o Options, list []scene) (report Report, failed error) {
	s, err := open(ctx, o, list)
	if err != nil {
		return Report{}, err
	}
	p := newPrinter(o)
	p.opening(s)
	all := make([]played, len(list))
	if o.Mode == Tender {
		all = s.tender(ctx, list, p)
	}
	for i := range list {
		if o.Mode != Tender {
			chat := p.scene(&list[i], i+1)
			all[i] = s.play(ctx, &list[i], func(e transcript.Entry) { p.entry(chat, e) }, p.remark)
			p.end(chat, all[i])
		}
		p.draw(&list[i], all[i])
	}
	ended := ctx.Err()
	if o.Open == nil || ended != nil {
		ended = errors.Join(ended, s.close())
	} else {
		defer func() { failed = errors.Join(failed, s.close()) }()
	}
	if ended != nil {
		return Report{}, ended
	}
	report = Report{Broker: s.key, OK: true}
	for i := range list {
		r := check(&list[i], all[i], s.key)
		report.Scenes = append(report.Scenes, r)
		report.OK = report.OK && r.OK()
	}
	kept := keep(o.Keep, list, all)
	signed := p.agreements(s, all, &report, o)
	p.summary(&report, o)
	err = errors.Join(kept, signed, p.err)
	if o.Open != nil && err == nil {
		err = s.show(ctx, o.Open, list[len(list)-1].roles[0].agent, report)
	}
	return report, err
}

// Transcripts is the subdirectory of Keep that holds the exported transcripts.
const Transcripts = "transcripts"

// keep writes each transcript to a file.
func keep(dir string, list []scene, all []played) error {
	if dir == "" {
		return nil
	}
	dir = filepath.Join(dir, Transcripts)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for i, p := range all {
		var text bytes.Buffer
		if err := transcript.Write(&text, p.entries); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, list[i].name+".jsonl"), text.Bytes(), 0o600); err != nil {
			return err
		}
	}
	return nil
}
