package main

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLog logs to out at a level and above.
func newLog(out io.Writer, level string, asJSON bool) (*zap.Logger, error) {
	from, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, err
	}
	shape := zap.NewProductionEncoderConfig()
	shape.EncodeTime = zapcore.ISO8601TimeEncoder
	encoder := zapcore.NewConsoleEncoder(shape)
	if asJSON {
		encoder = zapcore.NewJSONEncoder(shape)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(out)), from)), nil
}
