package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
)

// readLog reads and checks the public log.
func (v *verify) readLog(cmd *cobra.Command) error {
	l, err := openLog(cmd)
	if err != nil {
		return err
	}
	v.again = func() error {
		if v.leaves != nil {
			if err := background.Pause(cmd.Context(), untilLogged/20); err != nil {
				return err
			}
		}
		found, err := l.Whole(cmd.Context())
		if err != nil {
			return fmt.Errorf("the public log: %w", err)
		}
		v.leaves, v.ends = found.Hashes, found.Sessions
		return nil
	}
	return v.again()
}

// await waits for the log's leaf of a session that has just ended.
func (v *verify) await(s session.State) error {
	if !v.inLog || !s.Phase.Over() || time.Since(s.Updated) >= untilLogged {
		return nil
	}
	for end := time.Now().Add(untilLogged); !v.leaves[string(s.Head)] && time.Now().Before(end); {
		if err := v.again(); err != nil {
			return err
		}
	}
	return nil
}

// inTheLog is the rule that the public log has the end of a session.
const inTheLog transcript.Rule = "log"

// logged holds the end of a transcript against the public log. A session that is still
// open passes with --all only: nobody can tell it from one whose end was cut off.
func (v *verify) logged(s session.State) []transcript.Fault {
	if !v.inLog || v.leaves[string(s.Head)] || v.all && !s.Phase.Over() {
		return nil
	}
	why := "the public log does not have this entry as the end of a session"
	if !s.Phase.Over() {
		why += ": the session is open, or its end was cut off"
	}
	return []transcript.Fault{{Sequence: s.Next - 1, Rule: inTheLog, Why: why}}
}
