package inbox

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
)

// A response smaller than this fits a packet or two anyway.
const worthCompressing = 2 << 10

// send writes a response, compressed if the browser takes that and it is worth it.
func send(w http.ResponseWriter, r *http.Request, status int, data []byte) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	if len(data) >= worthCompressing && takesGzip(r) {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write(data) //nolint:errcheck // to memory
		z.Close()     //nolint:errcheck // to memory
		h.Set("Content-Encoding", "gzip")
		data = packed.Bytes()
	}
	w.WriteHeader(status)
	w.Write(data) //nolint:errcheck // the client disconnected
}

func takesGzip(r *http.Request) bool {
	for encoding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(encoding), ";")
		if name == "gzip" && strings.ReplaceAll(quality, " ", "") != "q=0" {
			return true
		}
	}
	return false
}
