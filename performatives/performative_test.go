package performatives

import "testing"

// TestThirteen is PROTOCOL.md §4: the closed list, in its order.
func TestThirteen(t *testing.T) {
	t.Parallel()
	want := []string{
		"PROPOSE", "ACCEPT", "REJECT", "COUNTER", "INFORM", "QUERY", "CLARIFY",
		"COMMIT", "DELEGATE", "ESCALATE", "WITHDRAW", "OBSERVE", "CLOSE",
	}
	all := All()
	if len(all) != len(want) {
		t.Fatalf("%d acts: %v", len(all), all)
	}
	for i, p := range all {
		if p.String() != want[i] || Parse(want[i]) != p {
			t.Errorf("act %d is %s, want %s", i, p, want[i])
		}
		if body := NewBody(p); body == nil || body.Act() != p {
			t.Errorf("%s has the body of another act", p)
		}
		var back Performative
		if text, err := p.MarshalText(); err != nil || back.UnmarshalText(text) != nil || back != p {
			t.Errorf("%s does not survive as text", p)
		}
	}
	for _, name := range []string{"", "UNKNOWN", "propose", "PROPOSE ", "ABSTAIN"} {
		if p := Parse(name); p != Unknown || NewBody(p) != nil {
			t.Errorf("%q is an act", name)
		}
		if new(Performative).UnmarshalText([]byte(name)) == nil {
			t.Errorf("%q reads as an act", name)
		}
	}
	if Acts.String() != "UNKNOWN" || NewBody(Acts) != nil {
		t.Error("one past the last is an act")
	}
}
