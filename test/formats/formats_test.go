// Package formats holds transcripts of every format that was ever released, and
// asks today's code whether it still reads them.
package formats

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/negotiation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/session/transcript"
)

// The states may be shown in another way one day, and are written again then;
// the transcripts are never touched.
var update = flag.Bool("update", false, "write the states that transcripts lead to")

// TestEveryFormat verifies and replays each transcript of each format: it is
// genuine, its acts are accepted by the rules, and they lead to the same state as
// when it was made.
func TestEveryFormat(t *testing.T) {
	t.Parallel()
	for format := 1; format <= performatives.Format; format++ {
		dir := filepath.Join("testdata", fmt.Sprint(format))
		files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
		if err != nil || len(files) == 0 {
			t.Fatalf("there is no transcript of format %d: %v", format, err)
		}
		for _, file := range files {
			t.Run(strings.TrimPrefix(file, "testdata/"), func(t *testing.T) {
				t.Parallel()
				replays(t, file, format, brokerOf(t, file))
			})
		}
	}
}

// brokerOf is the key of the broker that made a transcript: in a file of its own, or that of its directory.
func brokerOf(t *testing.T, file string) performatives.Key {
	key, err := os.ReadFile(strings.TrimSuffix(file, ".jsonl") + ".key")
	if errors.Is(err, fs.ErrNotExist) {
		key, err = os.ReadFile(filepath.Join(filepath.Dir(file), "broker.key"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return performatives.Key(bytes.TrimSpace(key))
}

func replays(t *testing.T, file string, format int, key performatives.Key) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	faults, err := transcript.Verify(bytes.NewReader(data), key, transcript.Expect{AllowUnsigned: true})
	if err != nil || len(faults) > 0 {
		t.Fatalf("%v %v", faults, err)
	}
	var state session.State
	var end time.Time
	var begun []api.TurnEntry
	for i, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		entry, err := transcript.Read(line)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if said := formatOf(entry.Stamp); said != format {
				t.Errorf("it says that its format is %d", said)
			}
			state = session.New(entry.Message.Session, modes.All())
		}
		if state.Phase > session.Invited {
			read, err := api.ReadEntry(line, nil)
			if err != nil {
				t.Fatal(err)
			}
			begun = append(begun, read.TurnEntry)
		}
		if state, err = session.Replay(state, entry.Message, entry.Stamp); err != nil {
			t.Fatal(err)
		}
		if end, err = entry.Stamp.AcceptedAt(); err != nil {
			t.Fatal(err)
		}
	}
	view := api.ViewSession(&state, end)
	found := negotiation.Turns(begun, state.Inviter(), &view)
	if taken, newest := state.Turns(); taken != uint64(len(found)) || taken > 0 && newest != found[taken-1].Entry.Sequence {
		t.Errorf("it counts %d turns, the newest in entry %d; a reader finds %+v", taken, newest, found)
	}
	got, err := json.Marshal(view, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		t.Fatal(err)
	}
	golden := strings.TrimSuffix(file, ".jsonl") + ".state.json"
	if *update {
		if err := os.WriteFile(golden, append(got, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytes.TrimSpace(want), got) {
		t.Errorf("it leads to\n%s\nwant\n%s", got, want)
	}
}

// formatOf is the format that the broker's pin in the first entry says.
func formatOf(s performatives.Stamp) int {
	for _, m := range s.Joined {
		if m.Policy != nil {
			return m.Policy.Format
		}
	}
	return 0
}
