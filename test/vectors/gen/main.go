// Command gen writes the vectors. `go generate ./test/vectors` runs it; a test of that package fails if the files
// are out of date.
package main

import (
	"log"
	"os"

	"github.com/parley-asp/parley/test/vectors"
)

func main() {
	files, err := vectors.Files()
	if err != nil {
		log.Fatal(err)
	}
	for name, data := range files {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			log.Fatal(err)
		}
	}
}
