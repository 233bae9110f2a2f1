package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// openPage opens a URL in a browser, says where it is in any case, and waits until the context ends.
func openPage(ctx context.Context, out io.Writer, url string) error {
	fmt.Fprintf(out, "\nThe last deal: %s\nThe link signs one browser in. The broker serves until you press Ctrl-C.\n", url) //nolint:errcheck // to a person
	program := browserFor(url)
	command := exec.CommandContext(ctx, program[0], program[1:]...)
	if err := command.Run(); err != nil && ctx.Err() == nil {
		fmt.Fprintf(out, "No browser was opened (%s: %v): open the link yourself.\n", program[0], err) //nolint:errcheck // to a person
	}
	<-ctx.Done()
	return nil
}

// browserFor is the command that opens a URL: the first of $BROWSER, in which %s stands for the URL, else
// the system's own.
func browserFor(url string) []string {
	first, _, _ := strings.Cut(os.Getenv("BROWSER"), string(os.PathListSeparator))
	words := strings.Fields(first)
	for n, word := range words {
		if strings.Contains(word, "%s") {
			words[n] = strings.ReplaceAll(word, "%s", url)
			return words
		}
	}
	switch {
	case len(words) > 0:
		return append(words, url)
	case runtime.GOOS == "darwin":
		return []string{"open", url}
	case runtime.GOOS == "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler", url}
	}
	return []string{"xdg-open", url}
}
