package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// keepFlags say how long something is kept.
func keepFlags(flags *pflag.FlagSet, s *serve) {
	flags.DurationVar(&s.Archive.After, "archive-after", 0, "how long after its end a session moves to the archive, in bursts of which four fall into that time, or one into an hour; 0 is never. A store is made with an archive, or without")
	flags.DurationVar(&s.Archive.Closed, "keep-closed", 0, "how long a closed session is kept in the archive; 0 is for ever")
	flags.DurationVar(&s.Archive.Failed, "keep-failed", 0, "the same of a failed one")
	flags.DurationVar(&s.InboxAge, "keep-inbox", 0, "how long inbox copies are kept; older messages are read with session.messages (default: as long as they are, 168h at first)")
}

// leastInbox is longer than brokers need to agree on who was sent what.
const leastInbox = time.Hour

// kept checks the flags that say how long something is kept.
func (s *serve) kept(cmd *cobra.Command) error {
	flags := cmd.Flags()
	for _, name := range []string{"archive-after", "keep-closed", "keep-failed"} {
		if d, err := flags.GetDuration(name); err != nil || d < 0 {
			return usage(fmt.Errorf("--%s is a time, or 0", name))
		}
	}
	if s.Archive.After == 0 && (s.Archive.Closed > 0 || s.Archive.Failed > 0) {
		return usage(errors.New("--keep-closed and --keep-failed are of sessions in the archive, where --archive-after moves them; elsewhere transcripts are never deleted"))
	}
	if s.InboxAge < leastInbox && flags.Changed("keep-inbox") {
		return usage(fmt.Errorf("--keep-inbox is at least %s: a principal should find what came while it was away", leastInbox))
	}
	return nil
}
