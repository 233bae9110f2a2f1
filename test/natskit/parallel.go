package natskit

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// atOnce is how many parallel tests of a package run at once unless -parallel says so. These tests
// wait most of the time, for fsyncs, timers and elections: as many as cores would leave the cores idle.
const atOnce = 24

// gcPercent is the garbage collector's, unless GOGC is set: a fifth of the CPU of the broker's tests less than with 100.
const gcPercent = 200

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if slices.ContainsFunc(os.Args, func(arg string) bool { return strings.HasPrefix(arg, "-test.fuzz") }) {
		return // it says how many processes look for inputs
	}
	testing.Init()
	if err := flag.Set("test.parallel", strconv.Itoa(max(atOnce, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
}
