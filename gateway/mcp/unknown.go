package mcpgateway

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// unhandled is in what the SDK answers to an unknown method: in revisions before 2026-07-28 it is text, which
// a client takes for a failure of the transport.
const unhandled = "JSON RPC not handled"

// rpcOnly writes the SDK's answers to a request, and a JSON-RPC error instead of that text.
type rpcOnly struct {
	http.ResponseWriter
	request []byte
	held    bool // the status of an answer that may be that text
}

func (w *rpcOnly) WriteHeader(status int) {
	if w.held = status == http.StatusBadRequest; !w.held {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *rpcOnly) Write(data []byte) (int, error) {
	if !w.held {
		return w.ResponseWriter.Write(data)
	}
	w.held = false
	if !bytes.Contains(data, []byte(unhandled)) {
		w.ResponseWriter.WriteHeader(http.StatusBadRequest)
		return w.ResponseWriter.Write(data)
	}
	var call struct {
		ID     jsontext.Value `json:"id"`
		Method string         `json:"method"`
	}
	status := http.StatusOK
	if json.Unmarshal(w.request, &call) != nil || len(call.ID) == 0 { // a batch or a notification, which has no answer of its own
		status, call.ID = http.StatusBadRequest, nil
	}
	fail(w.ResponseWriter, status, call.ID, jsonrpc.CodeMethodNotFound, fmt.Sprintf("there is no method %.40q", call.Method))
	return len(data), nil
}

// end writes the status of an answer that has nothing else.
func (w *rpcOnly) end() {
	if w.held {
		w.ResponseWriter.WriteHeader(http.StatusBadRequest)
	}
}

func (w *rpcOnly) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush sends what was written.
func (w *rpcOnly) Flush() {
	http.NewResponseController(w.ResponseWriter).Flush() //nolint:errcheck // the client went away
}
