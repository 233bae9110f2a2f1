package main

import "testing"

func TestRoom(t *testing.T) {
	for memory, want := range map[int64]int64{
		0:         64 << 20, // nobody could say how much there is
		512 << 20: 64 << 20,
		4 << 30:   128 << 20,
		64 << 30:  192 << 20,
	} {
		if got := room(memory); got != want {
			t.Errorf("of %d MiB: %d MiB, want %d", memory>>20, got>>20, want>>20)
		}
	}
	if memory() <= 0 {
		t.Error("this machine has no memory")
	}
	t.Setenv("GOGC", "50")
	if headroom() != nil {
		t.Error("the collector's setting is not the operator's")
	}
}
