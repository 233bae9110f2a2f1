// Command parley is the session broker, and what one does with a broker from
// the command line. `parley help` lists the commands.
//
// Exit status: 0 is done, 1 is refused or failed, 2 is a wrong command line
// (PROTOCOL.md §10).
package main

import (
	"context"
	"os"
)

func main() { os.Exit(run(context.Background(), os.Args[1:])) }
