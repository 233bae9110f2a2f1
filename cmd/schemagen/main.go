// Command gen writes, from the Go types and the table of verbs, the JSON Schemas of
// the thirteen bodies, of the invitation's terms and of the contract's other parts,
// and docs/asyncapi.yaml. `go generate ./schemas` runs it; a test of this package
// fails if the files are out of date.
package main

import (
	"log"
	"os"
	"path/filepath"
)

func main() {
	files, err := generate("github.com/parley-asp/parley/schemas", "../performatives")
	if err != nil {
		log.Fatal(err)
	}
	if files["../docs/asyncapi.yaml"], err = asyncAPI("github.com/parley-asp/parley/schemas", "../performatives"); err != nil {
		log.Fatal(err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Clean(name), data, 0o600); err != nil {
			log.Fatal(err)
		}
	}
}
