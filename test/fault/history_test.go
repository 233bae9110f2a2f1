package fault

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// TestNotLinearizableIsFound: the check of histories finds what is wrong.
func TestNotLinearizableIsFound(t *testing.T) {
	t.Parallel()
	op := func(asked any, called, answered int64) porcupine.Operation {
		return porcupine.Operation{Input: asked, Call: called, Return: answered}
	}
	for _, c := range []struct {
		name string
		want porcupine.CheckResult
		ops  []porcupine.Operation
		old  []lag
	}{
		{"in order", porcupine.Ok, []porcupine.Operation{op(appends{0}, 1, 2), op(appends{1}, 3, 4), op(ends{2}, 5, 6)}, nil},
		{"at once", porcupine.Ok, []porcupine.Operation{op(appends{1}, 1, 9), op(appends{0}, 2, 8), op(ends{1}, 3, 7)}, nil},
		{"against the order of the answers", porcupine.Illegal, []porcupine.Operation{op(appends{1}, 1, 2), op(appends{0}, 3, 4)}, nil},
		{"one place given twice", porcupine.Illegal, []porcupine.Operation{op(appends{0}, 1, 4), op(appends{0}, 2, 5)}, nil},
		{"a stale reading", porcupine.Illegal, []porcupine.Operation{op(appends{0}, 1, 2), op(appends{1}, 3, 4), op(ends{1}, 5, 6)}, nil},
		{"a stale reading while readings may lag", porcupine.Ok, []porcupine.Operation{op(appends{0}, 1, 2), op(appends{1}, 3, 4), op(ends{1}, 5, 6)}, []lag{{5, 7, 2}}},
		{"a reading that lags by more than it may", porcupine.Illegal, []porcupine.Operation{op(appends{0}, 1, 2), op(appends{1}, 3, 4), op(ends{1}, 7, 8)}, []lag{{7, 9, 2}}},
		{"a stale reading after the lag", porcupine.Illegal, []porcupine.Operation{op(appends{0}, 1, 2), op(appends{1}, 3, 4), op(ends{1}, 5, 6)}, []lag{{1, 4, 2}}},
		{"an acceptance never lags", porcupine.Illegal, []porcupine.Operation{op(appends{1}, 1, 2), op(appends{0}, 3, 4)}, []lag{{1, 9, 9}}},
		{"a reading of what comes later", porcupine.Illegal, []porcupine.Operation{op(appends{0}, 1, 2), op(ends{2}, 3, 4), op(appends{1}, 5, 6)}, nil},
		{"a repeat of what is there", porcupine.Ok, []porcupine.Operation{op(appends{0}, 1, 2), op(holds{0}, 3, 4)}, nil},
		{"a repeat of what is not there yet", porcupine.Illegal, []porcupine.Operation{op(holds{0}, 1, 2), op(appends{0}, 3, 4)}, nil},
		{"a lost race", porcupine.Ok, []porcupine.Operation{op(appends{0}, 1, 5), op(lost{0, 1}, 2, 6)}, nil},
		{"a lost race without a winner", porcupine.Illegal, []porcupine.Operation{op(appends{0}, 1, 2), op(lost{1, 1}, 3, 4)}, nil},
		{"a race lost by a stale memory", porcupine.Illegal, []porcupine.Operation{op(appends{0}, 1, 2), op(appends{1}, 3, 4), op(lost{2, 1}, 5, 6)}, nil},
	} {
		h := &history{ops: c.ops, old: c.old}
		if got := h.linearizable(nil); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
