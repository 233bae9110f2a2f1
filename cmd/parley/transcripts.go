package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/session/transcript"
)

// messages returns the entries of a session from a sequence number on.
func (c connection) messages(ctx context.Context, id performatives.SessionID, since uint64) ([]jsontext.Value, error) {
	var all []jsontext.Value
	for raw, err := range c.Envelopes(ctx, id, since) {
		if err != nil {
			return nil, err
		}
		all = append(all, raw)
	}
	return all, nil
}

// upTo returns a session's view, and its transcript up to the head of that view.
func (c connection) upTo(ctx context.Context, id performatives.SessionID) (api.SessionView, []jsontext.Value, error) {
	view, err := c.View(ctx, id)
	if err != nil {
		return view, nil, err
	}
	lines, err := c.messages(ctx, id, 0)
	if err != nil {
		return view, nil, err
	}
	if last := view.Head.Sequence; last != nil && uint64(len(lines)) > *last+1 {
		lines = lines[:*last+1]
	}
	return view, lines, nil
}

// read reads delivered envelopes.
func read(lines []jsontext.Value) ([]transcript.Entry, error) {
	return transcript.ReadAll(bytes.NewReader(export(lines)))
}

// opened reads entries of a session, and opens what the caller's own side has sealed in them.
func (c connection) opened(ctx context.Context, lines []jsontext.Value) ([]transcript.Entry, error) {
	entries, err := read(lines)
	first := slices.IndexFunc(entries, func(e transcript.Entry) bool { return len(e.Message.Digests()) > 0 })
	if err != nil || first < 0 {
		return entries, err
	}
	parts, err := c.Sealed(ctx, entries[first].Message.Session, entries[first].Stamp.Sequence)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if own := parts[e.Message.ID]; own != nil {
			if err := e.Message.Open(own); err != nil {
				return nil, err
			}
		}
	}
	return entries, nil
}

// export formats delivered envelopes as JSON Lines.
func export(lines []jsontext.Value) []byte {
	var out bytes.Buffer
	for _, line := range lines {
		out.Write(line)
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// replayed is the rule that replaying the transcript accepts every entry.
const replayed transcript.Rule = "replay"

// parts open what is sealed, by message.
type parts map[performatives.MessageID]performatives.SealedParts

// readParts reads what session export --sealed wrote.
func readParts(file string) (p parts, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("%s is not from session export --sealed: %w", file, err)
	}
	return p, nil
}

// A tally counts the members that are sealed in a transcript, and those whose parts were there.
type tally struct{ all, opened int }

// replay replays a transcript, with what parts open of it. An entry that should have been refused, or
// should have led to another state, is a transcript.Fault, and so is one with a wrong part.
func replay(data []byte, parts parts) (session.State, tally, error) {
	var sealed tally
	entries, err := transcript.ReadAll(bytes.NewReader(data))
	if err != nil || len(entries) == 0 {
		return session.State{}, sealed, err
	}
	state := session.New(entries[0].Message.Session, modes.All())
	for i, e := range entries {
		digests := len(e.Message.Digests())
		sealed.all += digests
		if p, ok := parts[e.Message.ID]; ok {
			err = e.Message.Open(p)
			sealed.opened += digests
		}
		if err == nil {
			state, err = session.Replay(state, e.Message, e.Stamp)
		}
		if err != nil {
			return state, sealed, transcript.Fault{Line: i + 1, Sequence: e.Stamp.Sequence, Rule: replayed, Why: err.Error()}
		}
	}
	return state, sealed, nil
}
