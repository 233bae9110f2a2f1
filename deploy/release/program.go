package main

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

// mostBytes is how large a stripped program may be. One call of a method by its name, as in text/template, adds 6 MB:
// the linker then keeps every exported method.
const mostBytes = 45 << 20

// A program is parley for one platform.
type program struct {
	os, arch string
	path     string
	data     []byte
	info     *debug.BuildInfo
	time     time.Time // of the commit
	commit   string
}

// name is that of the file: parley, or parley.exe.
func (p program) name() string { return filepath.Base(p.path) }

func (p program) platform() string { return p.os + "-" + p.arch }

// readPrograms reads each DIR/<os>-<arch>/parley[.exe], and checks that all are of one commit and not too large.
func readPrograms(dir string) ([]program, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*-*", "parley*"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s has no program: run deploy/build first", dir)
	}
	var all []program
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		info, err := buildinfo.Read(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		p, err := newProgram(path, data, info)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(all) > 0 && p.commit != all[0].commit {
			return nil, fmt.Errorf("%s is of commit %s, %s of %s", path, p.commit, all[0].path, all[0].commit)
		}
		all = append(all, p)
	}
	return all, nil
}

func newProgram(path string, data []byte, info *debug.BuildInfo) (program, error) {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	p := program{path: path, data: data, info: info, os: settings["GOOS"], arch: settings["GOARCH"], commit: settings["vcs.revision"]}
	if folder := filepath.Base(filepath.Dir(path)); folder != p.platform() {
		return p, fmt.Errorf("is of %s", p.platform())
	}
	for key, want := range map[string]string{"CGO_ENABLED": "0", "-trimpath": "true", "-tags": "grpcnotrace"} {
		if settings[key] != want {
			return p, fmt.Errorf("was built with %s=%s, want %s", key, settings[key], want)
		}
	}
	var err error
	if p.time, err = time.Parse(time.RFC3339, settings["vcs.time"]); err != nil || p.commit == "" {
		return p, errors.New("names no commit: build it from a checkout of git")
	}
	if settings["vcs.modified"] == "true" {
		p.commit += "+dirty"
	}
	if len(data) > mostBytes {
		return p, fmt.Errorf("has %.1f MiB, at most %d: see which dependency is new", float64(len(data))/(1<<20), mostBytes>>20)
	}
	return p, nil
}

// base is how all that is made of a program is named.
func (p program) base(version string) string {
	return strings.Join([]string{"parley", version, p.os, p.arch}, "-")
}
