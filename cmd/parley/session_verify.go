package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/audit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/transcript"
)

// A verdict is what verification says of one transcript.
type verdict struct {
	Source  string             `json:"source"` // a file, or a session's id
	Session string             `json:"sessionId,omitzero"`
	Entries int                `json:"entries"`
	State   string             `json:"state,omitzero"` // after the last entry
	OK      bool               `json:"ok"`
	Faults  []transcript.Fault `json:"faults"`
	Derived []audit.Fault      `json:"derived"`        // of what the broker keeps beside it, as an operator
	Error   string             `json:"error,omitzero"` // why it could not be verified
}

type verify struct {
	all       bool
	brokerKey string
	expect    transcript.Expect
	head      string
	settle    time.Duration
	verdicts  []verdict
	items     []audit.Fault // of the escalation inbox, of no session that is there
}

func sessionVerify() *cobra.Command {
	v := &verify{verdicts: []verdict{}}
	cmd := &cobra.Command{
		Use: "verify ID | FILE | --all", Short: "check that a transcript is whole, genuine and by the rules",
		Long: `Checks every entry: its hash, its place in the chain, the broker's receipt, the
sender's signature by the key that was pinned when it joined; then plays the
session again and insists that the rules of the protocol hear each act and lead
to the states that the receipts say. Each fault names the entry and the rule.

A file, as parley session export writes it, is checked offline with --broker-key;
without, the broker at --url is asked for its key. A session is fetched first.

For an operator it also holds what the broker keeps beside each transcript against
it: every principal's inbox copies, in order and none missing but the expired, the
timer, the list of sessions, the escalation inbox. A broker that is delivering just
now is given a few seconds. --all takes every transcript of the store, whether the
list has it or not; --timeout is for each session, and one that cannot be verified
is reported with the reason. The inbox copies of a session with more than 20,000 of
them are counted, and only the last in each inbox is compared.`,
		Example: `  parley session verify deal.jsonl --broker-key UAFC…
  parley session verify 019478a3-0001-7def-8a12-000000000001
  parley session verify --all`,
		Args: args(func(_ *cobra.Command, args []string) error {
			if v.all == (len(args) > 0) {
				return errors.New("name sessions or files, or give --all")
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			v.expect.Head = performatives.Hash(v.head)
			if key := performatives.Key(v.brokerKey); key != "" && !key.Valid() {
				return usage(errors.New("--broker-key is a public user nkey, U and 55 more letters and digits"))
			}
			if err := v.run(cmd, args); err != nil {
				return err
			}
			return v.report(cmd)
		},
	}
	cmd.Flags().BoolVar(&v.all, "all", false, "verify every session of the broker")
	cmd.Flags().StringVar(&v.brokerKey, "broker-key", "", "the broker's public key (default: ask the broker)")
	cmd.Flags().StringVar(&v.head, "head", "", "the hash that the last entry must have: without it, entries missing at the end of a file leave no trace")
	cmd.Flags().DurationVar(&v.settle, "settle", settledWithin, "how long what a broker has still to deliver may take")
	cmd.Flags().IntVar(&v.expect.Length, "entries", 0, "how many entries there must be")
	cmd.Flags().BoolVar(&v.expect.AllowUnsigned, "allow-unsigned", false, "hear unsigned entries of who has a key, as a broker under --dev does")
	return cmd
}

func (v *verify) run(cmd *cobra.Command, args []string) error {
	if v.brokerKey != "" && !v.all && allFiles(args) {
		return v.files(args)
	}
	return v.broker(cmd, args)
}

// allFiles tells whether none of the arguments is a session's id.
func allFiles(args []string) bool {
	for _, arg := range args {
		if _, err := performatives.ParseSessionID(arg); err == nil {
			return false
		}
	}
	return true
}

func (v *verify) files(names []string) error {
	for _, name := range names {
		data, err := contents(name)
		if err != nil {
			return err
		}
		if err := v.judge(name, data, v.expect); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func contents(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(name)
}

// judge verifies one transcript. A replay of what is not genuine would only say
// the same in other words.
func (v *verify) judge(source string, data []byte, expect transcript.Expect) error {
	found, err := v.verdict(source, data, expect)
	if err == nil {
		v.verdicts = append(v.verdicts, found)
	}
	return err
}

func (v *verify) verdict(source string, data []byte, expect transcript.Expect) (found verdict, err error) {
	faults, err := transcript.Verify(bytes.NewReader(data), performatives.Key(v.brokerKey), expect)
	if err != nil {
		return found, err
	}
	found = verdict{Source: source, Session: string(expect.Session), Entries: countLines(data), Faults: []transcript.Fault{}, Derived: []audit.Fault{}}
	if len(faults) == 0 {
		state, err := replay(data)
		if fault, broken := errors.AsType[transcript.Fault](err); broken {
			faults = []transcript.Fault{fault}
		} else if err != nil {
			return found, err
		}
		found.Session, found.State = string(state.ID), state.Phase.String()
	}
	found.Faults = append(found.Faults, faults...)
	found.OK = len(faults) == 0
	return found, nil
}

func countLines(data []byte) int {
	n := bytes.Count(data, []byte("\n"))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		n++
	}
	return n
}

func (v *verify) report(cmd *cobra.Command) error {
	bad := 0
	var out strings.Builder
	if len(v.verdicts) == 0 {
		out.WriteString("no sessions\n")
	}
	for _, found := range v.verdicts {
		if found.OK {
			fmt.Fprintf(&out, "ok     %s  %d entries, %s\n", found.Source, found.Entries, found.State)
			continue
		}
		bad++
		if found.Error != "" {
			fmt.Fprintf(&out, "ERROR  %s  not verified: %s\n", found.Source, render.Clean(found.Error))
			continue
		}
		fmt.Fprintf(&out, "FAULT  %s  %d entries\n", found.Source, found.Entries)
		for _, f := range found.Faults {
			fmt.Fprintf(&out, "       %s\n", render.Clean(f.Error()))
		}
		for _, f := range found.Derived {
			fmt.Fprintf(&out, "       %s\n", render.Clean(f.Error()))
		}
	}
	for _, f := range v.items {
		fmt.Fprintf(&out, "FAULT  %s\n", render.Clean(f.Error()))
	}
	err := show(cmd, struct {
		Transcripts []verdict     `json:"transcripts"`
		Derived     []audit.Fault `json:"derived,omitzero"` // of no transcript that is there
	}{v.verdicts, v.items}, func(render.Style) string { return out.String() })
	switch {
	case err != nil:
	case bad > 0:
		err = fmt.Errorf("%d of %d transcripts is not in order", bad, len(v.verdicts))
	case len(v.items) > 0:
		err = fmt.Errorf("the escalation inbox has %d items of no transcript", len(v.items))
	}
	return err
}
