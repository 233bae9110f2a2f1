// Command parley is the session broker and its command line client. Run parley help
// for the commands.
//
// Exit status: 0 done, 1 refused or failed, 2 wrong usage (PROTOCOL.md §10).
package main

import (
	"context"
	"os"
)

func main() { os.Exit(run(context.Background(), os.Args[1:])) }
