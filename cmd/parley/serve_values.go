package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// A file is the value of a flag that names a file, which is read at once.
type file[T any] struct {
	path string
	into *T
	read func(path string) (T, error)
}

func reads[T any](into *T, read func(path string) (T, error)) pflag.Value {
	return &file[T]{into: into, read: read}
}

func (f *file[T]) Set(path string) error {
	if path != "" {
		read, err := f.read(path)
		if err != nil {
			return err
		}
		*f.into = read
	}
	f.path = path
	return nil
}

func (f *file[T]) String() string { return f.path }

func (f *file[T]) Type() string { return "file" }

func readText(path string) (string, error) {
	data, err := os.ReadFile(path)
	return string(data), err
}

// listed is the value of a flag that can be repeated. Each value is checked by add.
type listed struct {
	given []string
	add   func(string) error
}

func (l *listed) Set(text string) error { return l.Append(text) }

// Append, Replace and GetSlice make it a pflag.SliceValue.
func (l *listed) Append(text string) error {
	if err := l.add(text); err != nil {
		return err
	}
	l.given = append(l.given, text)
	return nil
}

func (l *listed) Replace(all []string) error {
	for _, text := range all {
		if err := l.Append(text); err != nil {
			return err
		}
	}
	return nil
}

func (l *listed) GetSlice() []string { return l.given }

func (l *listed) String() string { return strings.Join(l.given, ",") }

func (l *listed) Type() string { return "list" }

// milliseconds is the value of a flag that is a duration, for an option that counts milliseconds.
func milliseconds(into *int64, most time.Duration) pflag.Value {
	*into = most.Milliseconds()
	return (*ms)(into)
}

type ms int64

func (m *ms) Set(text string) error {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return err
	case d < time.Millisecond:
		return errors.New("is at least 1ms")
	}
	*m = ms(d.Milliseconds())
	return nil
}

func (m *ms) String() string { return (time.Duration(*m) * time.Millisecond).String() }

func (m *ms) Type() string { return "duration" }

// longestSync is so long that who says more means something else.
const longestSync = time.Hour

// fsync is the value of --sync. Zero fsyncs before each acceptance.
type fsync time.Duration

func (f *fsync) Set(text string) error {
	if text == "always" {
		*f = 0
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > longestSync {
		return fmt.Errorf("want always, or a duration above 0 such as 1s, at most %s", longestSync)
	}
	*f = fsync(d)
	return nil
}

func (f *fsync) String() string {
	if *f == 0 {
		return "always"
	}
	return time.Duration(*f).String()
}

func (f *fsync) Type() string { return "duration" }

func (f *fsync) meaning() string {
	if *f == 0 {
		return "always: every accepted act has been fsynced"
	}
	return "every " + f.String() + ": a power failure can lose the acts accepted in the last " + f.String()
}
