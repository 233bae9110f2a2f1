package embedded

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"go.uber.org/zap"
)

// logger writes the server's log to zap. The server calls Fatalf when it cannot start, and
// expects the process to exit. The logger keeps the first such error, and Start returns it. It also keeps the first
// that a stream could not be written: the server answers nothing to who sends to it then.
type logger struct {
	out    *zap.Logger
	fatal  atomic.Pointer[error]
	broken atomic.Pointer[error]
}

// writeError is in the line with which the server says so.
const writeError = "critical write error"

func (l *logger) Noticef(format string, v ...any) { l.out.Info(fmt.Sprintf(format, v...)) }
func (l *logger) Debugf(format string, v ...any)  { l.out.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Tracef(format string, v ...any)  { l.out.Debug(fmt.Sprintf(format, v...)) }

// afterKill are in the warnings of a start after a kill: what the server notes of a stream now and then is older than
// its messages, so it reads those again. Of messages that are missing or torn it has other lines.
var afterKill = []string{
	"Stream state outdated, last block has additional entries", "Stream state outdated, found extra blocks",
	"Recovering stream state from index errored: prior state file", "state is outdated; attempting to recover",
}

func (l *logger) Warnf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	if slices.ContainsFunc(afterKill, func(part string) bool { return strings.Contains(text, part) }) {
		l.out.Info(text)
		return
	}
	l.out.Warn(text)
}

func (l *logger) Errorf(format string, v ...any) {
	err := fmt.Errorf(format, v...)
	if strings.Contains(format, writeError) {
		l.broken.CompareAndSwap(nil, &err)
	}
	l.out.Error(err.Error())
}

func (l *logger) Fatalf(format string, v ...any) {
	err := fmt.Errorf(format, v...)
	l.fatal.CompareAndSwap(nil, &err)
	l.out.Error(err.Error())
}
