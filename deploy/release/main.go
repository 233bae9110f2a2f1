// Command release turns the programs of deploy/build into what is published.
//
//	release package -bin DIR -out DIR -version V    archives, an SBOM each, licences, SHA256SUMS
//	release image -bin DIR -out FILE -version V     an OCI image of the Linux ones, as a tar
//
// It runs at the top of a checkout. The same programs make the same bytes: every time is that of the commit.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("want package or image")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	bin := flags.String("bin", "", "`DIR` of deploy/build, with a folder for each platform")
	out := flags.String("out", "", "`DIR` of the archives, or FILE of the image")
	version := flags.String("version", "", "`VERSION` in the names")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *bin == "" || *out == "" || *version == "" || flags.NArg() > 0 {
		return errors.New("want -bin, -out and -version")
	}
	programs, err := readPrograms(*bin)
	if err != nil {
		return err
	}
	switch args[0] {
	case "package":
		return packageAll(programs, *out, *version)
	case "image":
		return writeImage(programs, *out, *version)
	}
	return fmt.Errorf("no command %q: want package or image", args[0])
}
