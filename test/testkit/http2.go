package testkit

import (
	"bytes"
	"io"
	"net"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// An HTTP2 is a client of HTTP/2 without TLS that takes the bodies of answers only as far as its
// windows are open.
type HTTP2 struct {
	testing.TB
	frames *http2.Framer
	last   uint32
	header bytes.Buffer
	fields *hpack.Encoder
}

// NewHTTP2 begins to speak HTTP/2 on a connection. Each stream has this window.
func NewHTTP2(t testing.TB, conn net.Conn, window uint32) *HTTP2 {
	t.Helper()
	h := &HTTP2{TB: t, frames: http2.NewFramer(conn, conn)}
	h.fields = hpack.NewEncoder(&h.header)
	_, err := io.WriteString(conn, http2.ClientPreface)
	Must(t, err)
	Must(t, h.frames.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}))
	return h
}

// Get asks for a path in a stream of its own.
func (h *HTTP2) Get(path string, headers ...string) (stream uint32) {
	h.Helper()
	if h.last == 0 {
		h.last = 1
	} else {
		h.last += 2
	}
	h.header.Reset()
	fields := append([]string{":method", "GET", ":scheme", "http", ":authority", "localhost", ":path", path}, headers...)
	for i := 0; i < len(fields); i += 2 {
		Must(h, h.fields.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}))
	}
	Must(h, h.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: h.last, BlockFragment: h.header.Bytes(), EndStream: true, EndHeaders: true}))
	return h.last
}

// Open lets a stream send more.
func (h *HTTP2) Open(stream, more uint32) {
	h.Helper()
	Must(h, h.frames.WriteWindowUpdate(0, more))
	Must(h, h.frames.WriteWindowUpdate(stream, more))
}

// Next reads a frame.
func (h *HTTP2) Next() (http2.Frame, error) { return h.frames.ReadFrame() }
