package mcpgateway

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Stdio serves one client that writes a message on each line, until it closes its end. What is no message is answered
// with an error, and disturbs nothing: the library would end.
func Stdio(ctx context.Context, server *mcp.Server, in io.Reader, out io.Writer) error {
	to := &oneAtATime{out: out}
	return server.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(&messages{in: bufio.NewReader(in), errors: to}), Writer: to})
}

// oneAtATime writes whole lines of two writers.
type oneAtATime struct {
	mu  sync.Mutex
	out io.Writer
}

func (o *oneAtATime) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.out.Write(data)
}

func (*oneAtATime) Close() error { return nil }

// messages are the lines that are messages, or batches of them.
type messages struct {
	in     *bufio.Reader
	errors io.Writer
	rest   []byte // of the line that is being read
	begun  bool
	single bool // the client began without asking for a revision of MCP that has batches
}

// withBatches are the revisions of MCP that have them.
var withBatches = []string{"2024-11-05", "2025-03-26"}

func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		line, err := m.in.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if code, why := m.faultOf(line); why != "" {
				data, err := json.Marshal(object{"jsonrpc": "2.0", "id": nil, "error": object{"code": code, "message": why}}, json.Deterministic(true))
				if err != nil {
					return 0, err
				}
				if _, err := m.errors.Write(append(data, '\n')); err != nil {
					return 0, err
				}
			} else {
				m.rest = slices.Concat(line, []byte{'\n'})
			}
		}
		if err != nil && len(m.rest) == 0 {
			return 0, err
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// faultOf is why a line is no message; "" is that it is one.
func (m *messages) faultOf(line []byte) (code int, why string) {
	lax := json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) // the library says what is wrong with a message
	all := []jsontext.Value{line}
	switch {
	case len(line) > mcp.DefaultMaxLineLength:
		return jsonrpc.CodeInvalidRequest, fmt.Sprintf("a message has at most %d bytes", mcp.DefaultMaxLineLength)
	case !jsontext.Value(line).IsValid(lax):
		return jsonrpc.CodeParseError, "the line is not JSON"
	case line[0] == '[' && (json.Unmarshal(line, &all, lax) != nil || len(all) == 0):
		return jsonrpc.CodeInvalidRequest, "the batch is empty"
	case line[0] == '[' && m.single:
		return jsonrpc.CodeInvalidRequest, "this revision of MCP has no batches"
	}
	ids := map[jsonrpc.ID]bool{}
	for _, one := range all {
		message, err := jsonrpc.DecodeMessage(one)
		if err != nil {
			return jsonrpc.CodeInvalidRequest, "the line is no message of JSON-RPC 2.0"
		}
		request, is := message.(*jsonrpc.Request)
		switch {
		case !is:
		case request.IsCall() && ids[request.ID]:
			return jsonrpc.CodeInvalidRequest, "the batch has an id twice"
		case request.Method == "initialize" && !m.begun:
			var params mcp.InitializeParams
			m.begun = true
			m.single = json.Unmarshal(request.Params, &params, lax) != nil || !slices.Contains(withBatches, params.ProtocolVersion)
		}
		if is {
			ids[request.ID] = true
		}
	}
	return 0, ""
}
