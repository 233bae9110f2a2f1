package demo

import (
	"strings"
	"testing"
)

// Two negotiators agree, and their offers are drawn.
func TestHaggle(t *testing.T) {
	t.Parallel()
	r, out := playAll(t, Options{Mode: Haggle})
	if s := r.Scenes[0]; s.Mode != "bilateral/1" || s.Outcome != "pending" || s.Messages < 6 {
		t.Errorf("%+v", s)
	}
	for _, want := range []string{"●", "○", " agreed"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	if _, err := Run(t.Context(), Options{Mode: Haggle, Face: HTTP}); err == nil {
		t.Error("negotiators haggle over HTTP")
	}
}

// Three sellers' offers converge beside each other; the one that suits is accepted, and the others are
// left after it.
func TestTender(t *testing.T) {
	t.Parallel()
	r, out := playAll(t, Options{Mode: Tender})
	if len(r.Scenes) != 3 {
		t.Fatalf("%+v", r.Scenes)
	}
	for i, outcome := range []string{"abandoned", "completed", "abandoned"} {
		if s := r.Scenes[i]; s.Outcome != outcome || s.Messages != 12 || !s.Verified {
			t.Errorf("%+v", s)
		}
	}
	inOrder(t, out, "A tender", "Round 1", "AGENT", "deliveryDays", "price", "Round 4", "2 best",
		"accepts the offer of agent://cups.example/sales", "●", "○", " agreed",
		"verified offline", "1 Pottery", "abandoned  yes", "2 Cup maker", "completed  yes", "3 Print shop", "abandoned  yes")
	if _, err := Run(t.Context(), Options{Mode: Tender, Face: HTTP}); err == nil {
		t.Error("a tender is played over HTTP")
	}
}
