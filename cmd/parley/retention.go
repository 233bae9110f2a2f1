package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// retentionFlags say how long data is kept.
func retentionFlags(flags *pflag.FlagSet, s *serve) {
	flags.DurationVar(&s.Archive.After, "archive-after", 24*time.Hour, "move a session to the archive this long after its end; 0 never does. A store is created with an archive or without; the default leaves one without as it is")
	flags.DurationVar(&s.Archive.Closed, "keep-closed", 0, "keep closed sessions in the archive this long; 0 keeps them forever")
	flags.DurationVar(&s.Archive.Failed, "keep-failed", 0, "keep failed sessions in the archive this long; 0 keeps them forever")
	flags.DurationVar(&s.InboxAge, "keep-inbox", 0, "keep inbox copies this long; session.messages still returns older messages (default: the store's setting, initially 168h)")
}

// minInboxAge exceeds the time in which brokers agree on who received what.
const minInboxAge = time.Hour

// checkRetention checks the retention flags.
func (s *serve) checkRetention(cmd *cobra.Command) error {
	flags := cmd.Flags()
	for _, name := range []string{"archive-after", "keep-closed", "keep-failed"} {
		if d, err := flags.GetDuration(name); err != nil || d < 0 {
			return usage(fmt.Errorf("--%s is a duration of 0 or more", name))
		}
	}
	deletes := s.Archive.Closed > 0 || s.Archive.Failed > 0
	if s.Archive.After == 0 && deletes {
		return usage(errors.New("--keep-closed and --keep-failed need --archive-after: sessions are deleted from the archive only"))
	}
	s.Archive.IfThere = !deletes && !flags.Changed("archive-after")
	if s.InboxAge < minInboxAge && flags.Changed("keep-inbox") {
		return usage(fmt.Errorf("--keep-inbox is at least %s, so that a principal can be offline for a while", minInboxAge))
	}
	return nil
}
