package escalation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Deny is what an organisation wants of denials.
type Deny struct {
	Required bool     `yaml:"required"` // a denial must give a reason
	Reasons  []string `yaml:"reasons"`  // offered to humans who deny; they may write another
}

// The bounds of reasons in the rules.
const (
	maxReasons     = 20
	maxReasonChars = 200
)

func (d *Deny) check() error {
	if len(d.Reasons) > maxReasons {
		return fmt.Errorf("at most %d reasons", maxReasons)
	}
	for n, reason := range d.Reasons {
		switch {
		case strings.TrimSpace(reason) == "":
			return errors.New("a reason is empty")
		case utf8.RuneCountInString(reason) > maxReasonChars:
			return fmt.Errorf("a reason has at most %d characters", maxReasonChars)
		case slices.Contains(d.Reasons[:n], reason):
			return fmt.Errorf("%q is there twice", reason)
		}
	}
	return nil
}
