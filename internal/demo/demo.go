// Package demo plays negotiations between agents that are real in all but what
// they deal in: each has its own key, its own connection and its own inbox, and
// decides by small rules on what it received. The broker is one that the demo
// starts, with logins and signatures, or one that is named.
//
//	report, err := demo.Run(ctx, demo.Options{Out: os.Stdout})
//	if err != nil {
//		return err // there was no broker to play on
//	}
//	fmt.Println(report.OK)
//
// The scenes are npayload's six negotiation patterns with their own terms, and
// one session in each of the modes bilateral/1 and convergent/1.
//
// Invariants:
//
//   - No agent knows of the others but what its inbox brings and the broker
//     answers.
//   - Every transcript is verified after the last scene, and where the broker is
//     the demo's own after it has stopped: with nothing but its public key.
package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/transcript"
)

// Options say what is played, where, and how it is shown. The zero Options play
// the six patterns on a broker of their own, and show nothing.
type Options struct {
	URL      string        // NATS address of the broker to play on; "" starts one
	Operator nkeys.KeyPair // of that broker; nil is for one under --dev
	Mode     string        // one of Choices; by default ASP
	Keep     string        // directory for the transcripts and the started broker's data; "" keeps nothing

	Out   io.Writer // nil shows nothing
	Style render.Style
	Quiet bool // the summary alone
}

// A Report is what came of the demo.
type Report struct {
	Broker performatives.Key `json:"broker"` // its public key
	Scenes []Result          `json:"scenes"`
	OK     bool              `json:"ok"` // every scene went as it should and verifies
}

// Run plays the scenes one after the other. The error says why they could not
// be played; what went wrong in a scene stands in its result.
func Run(ctx context.Context, o Options) (Report, error) {
	list := scenes(o.Mode)
	if list == nil {
		return Report{}, fmt.Errorf("there is no mode %q to show; there are %s", o.Mode, strings.Join(Choices(), ", "))
	}
	return run(ctx, o, list)
}

func run(ctx context.Context, o Options, list []scene) (Report, error) {
	s, err := open(ctx, o)
	if err != nil {
		return Report{}, err
	}
	p := newPrinter(o)
	p.opening(s)
	all := make([]played, len(list))
	for i := range list {
		chat := p.scene(&list[i], i+1)
		all[i] = s.play(ctx, &list[i], func(e transcript.Entry) { p.entry(chat, e) }, p.beside)
		p.end(chat, all[i])
	}
	if err := errors.Join(ctx.Err(), s.close()); err != nil {
		return Report{}, err
	}
	report := Report{Broker: s.key, OK: true}
	for i := range list {
		r := judge(&list[i], all[i], s.key)
		report.Scenes = append(report.Scenes, r)
		report.OK = report.OK && r.OK()
	}
	p.summary(&report, o)
	return report, errors.Join(keep(o.Keep, list, all), p.err)
}

// Transcripts is the folder of the exports in the directory that is kept.
const Transcripts = "transcripts"

// keep writes every transcript to a file of its own.
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
