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

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client/audit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
)

// A verdict is the result of verifying one transcript.
type verdict struct {
	Source  string                `json:"source"` // a file or a session's id
	Session string                `json:"sessionId,omitzero"`
	Entries int                   `json:"entries"`
	Sealed  int                   `json:"sealed,omitzero"` // members that their senders sealed
	Opened  int                   `json:"opened,omitzero"` // of them, those whose parts were there
	Erased  int                   `json:"erased,omitzero"` // entries of which hash and receipt are left
	Lost    string                `json:"lost,omitzero"`   // what can no longer be verified
	State   string                `json:"state,omitzero"`  // after the last entry
	Logged  bool                  `json:"logged,omitzero"` // the public log has the end
	OK      bool                  `json:"ok"`
	Hosted  []performatives.Agent `json:"hosted,omitzero"` // whose key the installation holds
	Faults  []transcript.Fault    `json:"faults"`
	Derived []audit.Fault         `json:"derived"`        // faults of the broker's derived data, for an operator
	Error   string                `json:"error,omitzero"` // why it could not be verified
}

type verify struct {
	all      bool
	trust    brokerTrust
	expect   transcript.Expect
	head     string
	after    string        // the session after which --all goes on
	listed   int           // how many sessions there are with those before it
	next     string        // where it was interrupted; "" is nowhere
	wait     time.Duration // for side effects that a broker has yet to apply
	verdicts []verdict
	items    []audit.Fault // escalations without a transcript

	sealed string // file with parts
	parts  parts

	inLog  bool            // the end has to be in the public log
	leaves map[string]bool // hashes that the log has
	ends   int             // of them, those of sessions
	again  func() error    // reads the log again
	whole  bool            // all sessions were verified
}

func sessionVerify() *cobra.Command {
	v := &verify{verdicts: []verdict{}}
	cmd := &cobra.Command{
		Use: "verify ID | FILE | --all", Short: "check that a transcript is complete, authentic and valid",
		Long: `Checks every entry's hash, its link to the previous one, the broker's receipt, and
the sender's signature by the key pinned in the transcript. Then it replays the
session: the rules must accept each act and lead to the receipted states. Each
fault names the entry and the rule.

What a side has sealed (PROTOCOL.md section 7) is checked and replayed where its
parts are there: they come with an ID of your own organisation's sessions, or by
--sealed. Without them the broker's receipts stand for what follows from it.

A FILE from 'parley session export' is checked offline with --broker-key or
--broker-keys. Without them the broker is asked for its keys. An ID is fetched from
the broker first.

Of a session that was erased, hashes and receipts are left. They are checked, and
what they no longer prove is named.

For an operator it also audits the broker's derived data, as 'parley session
audit' does. --all verifies every transcript in the store in the order of their
ids, and says on standard error how far it is; --timeout applies to each request,
and a session that cannot be verified is reported with the reason. If it is
interrupted, it reports what is done; --after goes on from there. With --log, an operator is told
how many sessions the public log has that the store has not.`,
		Example: `  parley session verify deal.jsonl --broker-key UAFC…
  parley session verify ` + exampleSession + `
  parley session verify deal.jsonl --log --log-url https://acme.com/log
  parley session verify --all`,
		Args: func(_ *cobra.Command, args []string) error {
			if v.all == (len(args) > 0) {
				return usage(errors.New("name sessions or files, or set --all"))
			}
			if v.after != "" && !v.all {
				return usage(errors.New("--after goes with --all"))
			}
			if v.expect.Length < 0 {
				return usage(errors.New("--entries is 0 or more"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			v.expect.Head = performatives.Hash(v.head)
			if err := v.trust.read(); err != nil {
				return err
			}
			if v.sealed != "" {
				var err error
				if v.parts, err = readParts(v.sealed); err != nil {
					return err
				}
			}
			if v.inLog {
				if err := v.readLog(cmd); err != nil {
					return err
				}
			}
			if err := v.run(cmd, args); err != nil {
				return err
			}
			return v.report(cmd)
		},
	}
	cmd.Flags().BoolVar(&v.all, "all", false, "verify every session of the broker")
	v.trust.flags(cmd.Flags(), "ask the broker")
	cmd.Flags().StringVar(&v.head, "head", "", "expected `HASH` of the last entry; detects entries missing at the end")
	v.listFlags(cmd)
	cmd.Flags().BoolVar(&v.inLog, "log", false, "the session has ended, and the public log must have its last entry; detects entries missing at the end")
	logFlags(cmd)
	cmd.Flags().StringVar(&v.sealed, "sealed", "", "the `FILE` that 'session export --sealed' wrote beside the transcript: what is sealed is checked, too")
	cmd.Flags().IntVar(&v.expect.Length, "entries", 0, "expected number `N` of entries")
	cmd.Flags().BoolVar(&v.expect.AllowUnsigned, "allow-unsigned", false, "accept unsigned entries of principals with a key, as a broker under --dev does")
	return cmd
}

func (v *verify) listFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&v.after, "after", "", "of all sessions check those after this `ID`, as an interrupted check printed it")
	before(cmd, func() error {
		if _, err := performatives.ParseSessionID(v.after); v.after != "" && err != nil {
			return usage(fmt.Errorf("--after %q is not the whole id of a session: %w", v.after, err))
		}
		return nil
	})
	cmd.Flags().DurationVar(&v.wait, "applied-within", auditWait, "how long to wait for side effects that a broker has yet to apply")
}

func (v *verify) run(cmd *cobra.Command, args []string) error {
	if v.trust.key != "" && !v.all && allFiles(args) {
		return v.files(args)
	}
	return v.broker(cmd, args)
}

// allFiles reports whether no argument is the id of a session.
func allFiles(args []string) bool {
	for _, arg := range args {
		if checkPrefix("a session", arg) == nil {
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
		if err := v.check(name, data, v.expect); err != nil {
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

// check verifies one transcript.
func (v *verify) check(source string, data []byte, expect transcript.Expect) error {
	found, err := v.verdict(source, data, expect, func() (parts, error) { return v.parts, nil })
	if err == nil {
		v.verdicts = append(v.verdicts, found)
	}
	return err
}

// verdict verifies a transcript, and replays it if it is authentic.
func (v *verify) verdict(source string, data []byte, expect transcript.Expect, opens func() (parts, error)) (found verdict, err error) {
	expect.BrokerKeys = v.trust.keys
	faults, err := transcript.Verify(bytes.NewReader(data), v.trust.key, expect)
	if err != nil {
		return found, err
	}
	found = verdict{Source: source, Session: string(expect.Session), Entries: countLines(data), Faults: []transcript.Fault{}, Derived: []audit.Fault{}}
	if len(faults) == 0 && transcript.IsErased(data) {
		faults = v.erased(data, &found)
	} else if len(faults) == 0 {
		opened, err := opens() // of an authentic transcript only: of another one the broker could not answer
		if err != nil {
			return found, err
		}
		state, sealed, err := replay(data, opened)
		found.Sealed, found.Opened = sealed.all, sealed.opened
		if fault, broken := errors.AsType[transcript.Fault](err); broken {
			faults = []transcript.Fault{fault}
		} else if err != nil {
			return found, err
		}
		found.Session, found.State = string(state.ID), state.Phase.String()
		if err := v.await(state); err != nil {
			return found, err
		}
		found.Logged = v.leaves[string(state.Head)]
		faults = append(faults, v.logged(state)...)
		for _, a := range state.Participants() {
			if p, _ := state.Party(a); p.Custody == performatives.Hosted {
				found.Hosted = append(found.Hosted, a)
			}
		}
	}
	found.Faults = append(found.Faults, faults...)
	found.OK = len(faults) == 0
	return found, nil
}

// unprovable is what can no longer be verified of an erased session.
const unprovable = "erased: what was said, who said it and who joined, in which session and by which rules it was, and that no entry is missing between, can no longer be verified"

// erased says what is left of an authentic transcript that was erased. Its end may be in the public log.
func (v *verify) erased(data []byte, found *verdict) []transcript.Fault {
	found.Erased, found.Lost = found.Entries, unprovable
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	last, err := transcript.ReadErased(lines[len(lines)-1])
	if err != nil {
		return []transcript.Fault{{Line: len(lines), Rule: transcript.JSON, Why: err.Error()}}
	}
	found.State = last.Receipt.State
	if found.Logged = v.leaves[string(last.Hash)]; !v.inLog || found.Logged {
		return nil
	}
	return []transcript.Fault{{Sequence: last.Sequence, Rule: inTheLog, Why: "the public log does not have this entry as the end of a session"}}
}

func countLines(data []byte) int {
	n := bytes.Count(data, []byte("\n"))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		n++
	}
	return n
}

func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprint(n, " entries")
}

func (v *verify) report(cmd *cobra.Command) error {
	bad := 0
	var out strings.Builder
	switch {
	case len(v.verdicts) > 0:
	case v.listed > 0:
		fmt.Fprintf(&out, "0 of %s are after %s\n", render.Count(v.listed, "session", "sessions"), v.after)
	default:
		out.WriteString("no sessions\n")
	}
	for _, found := range v.verdicts {
		if found.OK {
			fmt.Fprintf(&out, "ok     %s  %s, %s\n", render.Clean(found.Source), entries(found.Entries), found.State)
			if found.Lost != "" {
				fmt.Fprintf(&out, "       %s\n", found.Lost)
			}
			if found.Sealed > 0 {
				fmt.Fprintf(&out, "       %d sealed parts, %d of them opened and checked\n", found.Sealed, found.Opened)
			}
			for _, a := range found.Hosted {
				fmt.Fprintf(&out, "       %s\n", render.Hosted(a))
			}
			continue
		}
		bad++
		if found.Error != "" {
			fmt.Fprintf(&out, "ERROR  %s  not verified: %s\n", render.Clean(found.Source), render.Clean(found.Error))
			continue
		}
		fmt.Fprintf(&out, "FAULT  %s  %s\n", render.Clean(found.Source), entries(found.Entries))
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
	missing := v.missing()
	if missing > 0 {
		fmt.Fprintf(&out, "%s in the public log, of %d, %s no transcript here: --keep-closed or --keep-failed deleted it, or it is lost\n",
			render.Count(missing, "end of a session", "ends of sessions"), v.ends, map[bool]string{true: "has", false: "have"}[missing == 1])
	}
	err := show(cmd, struct {
		Transcripts []verdict     `json:"transcripts"`
		Derived     []audit.Fault `json:"derived,omitzero"` // without a transcript
		Next        string        `json:"next,omitzero"`    // --after of the check that goes on; absent if this one is complete
		Missing     int           `json:"missing,omitzero"` // ends in the public log without a transcript
	}{v.verdicts, v.items, v.next, missing}, func(render.Style) string { return out.String() })
	switch {
	case err != nil:
	case bad > 0:
		err = fmt.Errorf("%d of %d transcripts have faults", bad, len(v.verdicts))
		if v.next != "" {
			err = fmt.Errorf("%w; interrupted: --after %s goes on", err, v.next)
		}
	case len(v.items) > 0:
		err = errors.New(render.Count(len(v.items), "escalation has", "escalations have") + " no transcript")
	case v.next != "":
		err = fmt.Errorf("interrupted after %s in order: --after %s goes on", render.Count(len(v.verdicts), "transcript, which is", "transcripts, which are"), v.next)
	}
	return err
}
