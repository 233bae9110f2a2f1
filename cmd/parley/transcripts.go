package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/modes"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/transcript"
)

// messages are the entries of a session from one place on. Who asks while there
// is an election or a takeover asks again, as for everything else.
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

// upTo is a session as it stands and its transcript up to there.
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

// sessionID reads the session that an argument names.
func sessionID(arg string) (performatives.SessionID, error) {
	id, err := performatives.ParseSessionID(arg)
	if err != nil {
		return "", usage(fmt.Errorf("%q names no session: %w", arg, err))
	}
	return id, nil
}

// read reads delivered envelopes.
func read(lines []jsontext.Value) ([]transcript.Entry, error) {
	return transcript.ReadAll(bytes.NewReader(export(lines)))
}

// export is JSON Lines: one delivered envelope per line.
func export(lines []jsontext.Value) []byte {
	var out bytes.Buffer
	for _, line := range lines {
		out.Write(line)
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// rulesKept is the rule that a broker keeps who hears only what the protocol
// hears: a replay says so.
const rulesKept transcript.Rule = "replay"

// replay folds a transcript again. An entry that should have been refused, or
// should have led to another state, is a transcript.Fault.
func replay(data []byte) (session.State, error) {
	entries, err := transcript.ReadAll(bytes.NewReader(data))
	if err != nil || len(entries) == 0 {
		return session.State{}, err
	}
	state := session.New(entries[0].Message.Session, modes.All())
	for i, e := range entries {
		if state, err = session.Replay(state, e.Message, e.Stamp); err != nil {
			return state, transcript.Fault{Line: i + 1, Sequence: e.Stamp.Sequence, Rule: rulesKept, Why: err.Error()}
		}
	}
	return state, nil
}
