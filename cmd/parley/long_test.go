//go:build long

package main

import "testing"

// TestVerifyTenThousand is TestVerifyLongList with ten thousand sessions.
func TestVerifyTenThousand(t *testing.T) {
	t.Parallel()
	verifiesLongList(t, 10_000)
}
