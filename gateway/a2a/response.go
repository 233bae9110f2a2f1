package a2agateway

import (
	"bytes"
	"net/http"

	"github.com/go-json-experiment/json"
)

// A response writes what the library answers, with two corrections: an error before the first
// event of a stream is an answer of its own, not an event, and errors of REST have the
// status that A2A §5.4 gives them.
type response struct {
	http.ResponseWriter
	out    *http.ResponseController
	rest   bool
	status int          // to be sent once it is known whether held is an error; else 0
	held   bytes.Buffer // of an error, or of a stream until its first event
	ended  bool         // with an error
}

// WriteHeader holds the status of errors, and of streams.
func (r *response) WriteHeader(status int) {
	if r.streams() || status >= http.StatusBadRequest {
		r.status = status
		return
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *response) streams() bool { return r.Header().Get("Content-Type") == "text/event-stream" }

func (r *response) Write(data []byte) (int, error) {
	switch {
	case r.ended:
		return len(data), nil
	case r.status != 0:
		return r.held.Write(data)
	}
	return r.ResponseWriter.Write(data)
}

// Flush flushes what was written.
func (r *response) Flush() {
	r.release()
	r.out.Flush() //nolint:errcheck // the client went away
}

// release writes what was held.
func (r *response) release() {
	if r.status == 0 {
		return
	}
	data, status := r.held.Bytes(), r.status
	r.status = 0
	if r.streams() {
		_, event, _ := bytes.Cut(data, []byte("data: "))
		var first struct {
			Error struct {
				Code int `json:"code"`
			} `json:"error"`
		}
		if json.Unmarshal(event, &first) == nil && first.Error.Code != 0 {
			data, r.ended = event, true
			r.Header().Set("Content-Type", "application/json")
			if r.rest {
				status = first.Error.Code
			}
		}
	}
	if r.rest && status >= http.StatusBadRequest {
		data, status = corrected(data, status)
	}
	r.ResponseWriter.WriteHeader(status)
	r.held = bytes.Buffer{}      // a stream may last
	r.ResponseWriter.Write(data) //nolint:errcheck // the client went away
}

// statuses are those of REST that the library does not have.
var statuses = map[string]int{"TASK_NOT_CANCELABLE": http.StatusConflict, "CONTENT_TYPE_NOT_SUPPORTED": http.StatusUnsupportedMediaType}

// corrected is an error of REST with its status.
func corrected(data []byte, status int) ([]byte, int) {
	var whole struct {
		Error object `json:"error"`
	}
	if json.Unmarshal(data, &whole) != nil {
		return data, status
	}
	details, _ := whole.Error["details"].([]any)
	for _, d := range details {
		detail, _ := d.(object)
		reason, _ := detail["reason"].(string)
		if right, is := statuses[reason]; is {
			whole.Error["code"] = right
			if written, err := json.Marshal(whole, json.Deterministic(true)); err == nil {
				return written, right
			}
		}
	}
	return data, status
}
