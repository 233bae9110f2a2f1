package embedded

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logger writes the server's log to zap. The server calls Fatalf when it cannot start, and
// expects the process to exit. The logger keeps the first such error, and Start returns it. It also keeps the first
// that a stream could not be written: the server answers nothing to who sends to it then.
type logger struct {
	out     *zap.Logger
	clients *zap.Logger // what it says of clients, of which each can make it say much
	fatal   atomic.Pointer[error]
	broken  atomic.Pointer[error]
}

// writeError is in the line with which the server says so.
const writeError = "critical write error"

// Of clients a minute has so many lines of each level, each of at most so many bytes.
const (
	mostOfClients = 30
	longestLine   = 1 << 10
)

const sampledLine = "a NATS client (more such lines of the minute are left out)"

func newLogger(out *zap.Logger) *logger {
	sampled := zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Minute, mostOfClients, 0) // by their text, which is the same
	})
	return &logger{out: out, clients: out.WithOptions(sampled)}
}

// ofClient is in what the server says of a client's connection, over TCP or WebSocket, or of what it sent.
var ofClient = regexp.MustCompile(` - [cw]id:\d+|^websocket|^Malformed JetStream|TLS handshake| ACK sequence \d+ past | bad NAK delay value`)

func (l *logger) log(level zapcore.Level, text string) {
	if !ofClient.MatchString(text) {
		l.out.Log(level, text)
		return
	}
	l.clients.Log(level, sampledLine, zap.String("line", strings.ToValidUTF8(text[:min(len(text), longestLine)], "")))
}

func (l *logger) Noticef(format string, v ...any) { l.log(zap.InfoLevel, fmt.Sprintf(format, v...)) }
func (l *logger) Debugf(format string, v ...any)  { l.out.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Tracef(format string, v ...any)  { l.out.Debug(fmt.Sprintf(format, v...)) }

// afterKill are in the warnings of a start after a kill: what the server notes of a stream now and then is older than
// its messages, so it reads those again. Of messages that are missing or torn it has other lines.
var afterKill = []string{
	"Stream state outdated, last block has additional entries", "Stream state outdated, found extra blocks",
	"Recovering stream state from index errored: prior state file", "state is outdated; attempting to recover",
}

func (l *logger) Warnf(format string, v ...any) {
	text, level := fmt.Sprintf(format, v...), zap.WarnLevel
	if slices.ContainsFunc(afterKill, func(part string) bool { return strings.Contains(text, part) }) {
		level = zap.InfoLevel
	}
	l.log(level, text)
}

func (l *logger) Errorf(format string, v ...any) {
	err := fmt.Errorf(format, v...)
	if strings.Contains(format, writeError) {
		l.broken.CompareAndSwap(nil, &err)
	}
	l.log(zap.ErrorLevel, err.Error())
}

func (l *logger) Fatalf(format string, v ...any) {
	err := fmt.Errorf(format, v...)
	l.fatal.CompareAndSwap(nil, &err)
	l.out.Error(err.Error())
}
