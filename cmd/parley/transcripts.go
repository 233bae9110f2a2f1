package main

import (
	"bytes"
	"context"

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

// replay replays a transcript. An entry that should have been refused, or should
// have led to another state, is a transcript.Fault.
func replay(data []byte) (session.State, error) {
	entries, err := transcript.ReadAll(bytes.NewReader(data))
	if err != nil || len(entries) == 0 {
		return session.State{}, err
	}
	state := session.New(entries[0].Message.Session, modes.All())
	for i, e := range entries {
		if state, err = session.Replay(state, e.Message, e.Stamp); err != nil {
			return state, transcript.Fault{Line: i + 1, Sequence: e.Stamp.Sequence, Rule: replayed, Why: err.Error()}
		}
	}
	return state, nil
}
