package natskit

import (
	"flag"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// atOnce is how many parallel tests of a package run at once unless -parallel says so. These tests
// wait most of the time, for fsyncs, timers and elections: as many as cores would leave the cores idle.
const atOnce = 12

func init() {
	if slices.ContainsFunc(os.Args, func(arg string) bool { return strings.HasPrefix(arg, "-test.fuzz") }) {
		return // it says how many processes look for inputs
	}
	testing.Init()
	if err := flag.Set("test.parallel", strconv.Itoa(max(atOnce, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
}
