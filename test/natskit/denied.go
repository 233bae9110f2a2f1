package natskit

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// Denied reports whether the NATS server refused what a connection did last about a subject. The
// server's error arrives before the answer to the flush.
func Denied(t testing.TB, nc *nats.Conn, subject string) bool {
	t.Helper()
	err := refusal(t, nc)
	return err != nil && strings.Contains(err.Error(), `"`+subject+`"`)
}

// Allowed reports whether the NATS server has refused nothing that a connection did.
func Allowed(t testing.TB, nc *nats.Conn) bool {
	t.Helper()
	return refusal(t, nc) == nil
}

// refusal is the permission that a connection lacked last.
func refusal(t testing.TB, nc *nats.Conn) error {
	t.Helper()
	Must(t, nc.Flush())
	err := nc.LastError()
	if err != nil && !errors.Is(err, nats.ErrPermissionViolation) {
		t.Fatal(err)
	}
	return err
}
