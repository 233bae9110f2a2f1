package main

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLog logs to out at a level and above, which can be changed.
func newLog(out io.Writer, level string, asJSON bool) (*zap.Logger, zap.AtomicLevel, error) {
	from, err := zap.ParseAtomicLevel(level)
	if err != nil {
		return nil, from, err
	}
	return logTo(out, from, asJSON), from, nil
}

// logTo logs to out as JSON, or for people.
func logTo(out io.Writer, from zapcore.LevelEnabler, asJSON bool) *zap.Logger {
	shape := zap.NewProductionEncoderConfig()
	shape.EncodeTime = zapcore.ISO8601TimeEncoder
	encoder := zapcore.NewConsoleEncoder(shape)
	if asJSON {
		encoder = zapcore.NewJSONEncoder(shape)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(out)), from))
}
