//go:build long

package cluster_test

import "testing"

// TestLongBackups takes twenty backups beside a load, and restores each.
func TestLongBackups(t *testing.T) { backups(t, 20) }
