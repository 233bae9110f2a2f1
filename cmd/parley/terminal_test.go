//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// openTerminal opens a real one, so many columns wide.
func openTerminal(t *testing.T, columns uint16) *os.File {
	t.Helper()
	open := func(name string) *os.File {
		f, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	far := open("/dev/ptmx")
	fd := int(far.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: 24}); err != nil {
		t.Fatal(err)
	}
	return open(fmt.Sprintf("/dev/pts/%d", n))
}

// TestBackupToTerminal: a backup is for no terminal.
func TestBackupToTerminal(t *testing.T) {
	t.Parallel()
	root := rootCommand()
	root.SetOut(openTerminal(t, 72))
	root.SetErr(io.Discard)
	root.SetArgs([]string{"backup", "-", "--data", t.TempDir(), "--nats", "nats://127.0.0.1:1"})
	if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "a terminal") {
		t.Errorf("to a terminal: %v", err)
	}
}

// TestColour: on a terminal only, and not where NO_COLOR is set.
func TestColour(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, tt := range []struct {
		name          string
		out           *os.File
		noColor, term string
		colour        bool
		width         int
	}{
		{"a terminal", openTerminal(t, 72), "", "xterm", true, 72},
		{"NO_COLOR", openTerminal(t, 72), "1", "xterm", false, 72},
		{"a dumb terminal", openTerminal(t, 72), "", "dumb", false, 72},
		{"a file", file, "", "xterm", false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("NO_COLOR", tt.noColor)
			t.Setenv("TERM", tt.term)
			t.Setenv("COLUMNS", "")
			cmd := &cobra.Command{}
			cmd.SetOut(tt.out)
			if s := style(cmd); s.Colour != tt.colour || s.Width != tt.width {
				t.Errorf("colour %v and width %d, want %v and %d", s.Colour, s.Width, tt.colour, tt.width)
			}
		})
	}
}
