package insights_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/broker/insights"
)

// COMMITMENTS.md C1: a session counts as agreed, and since when, if an agreement was made: accepted terms alone
// are none.
func TestAgreed(t *testing.T) {
	t.Parallel()
	const (
		asp, convergent = `"asp/1"`, `"convergent/1"`
		accepts         = `b ACCEPT {"referenceId":"p1"} CONVERSING`
		commits         = `a COMMIT {"commitmentId":"c1","referenceId":"p1"} AGREEING`
		timeout         = `broker://U CLOSE {"outcome":"failed","reason":"session_timeout"} FAILED`
		failed          = `a CLOSE {"outcome":"failed"} FAILED`
	)
	for name, c := range map[string]struct {
		mode   string
		acts   []string
		end    insights.End
		agreed int // which of the acts made it, from 1
	}{
		"completed":             {asp, []string{accepts, `a CLOSE {"outcome":"completed"} CLOSED`}, insights.Agreed, 2},
		"bare close":            {asp, []string{accepts, `c CLOSE {} CLOSED`}, insights.Agreed, 2},
		"abandoned":             {asp, []string{accepts, `a CLOSE {"outcome":"abandoned"} CLOSED`}, insights.Failed, 0},
		"failed":                {asp, []string{accepts, `a CLOSE {"outcome":"failed"} CLOSED`}, insights.Failed, 0},
		"timeout":               {asp, []string{accepts, timeout}, insights.Stalled, 0},
		"nothing accepted":      {asp, []string{`a CLOSE {} CLOSED`}, insights.Failed, 0},
		"commitment":            {asp, []string{accepts, commits, `b ACCEPT {"referenceId":"c1"} AGREEING`, `c ACCEPT {"referenceId":"c1"} EXECUTING`, failed}, insights.Agreed, 4},
		"commitment of some":    {asp, []string{accepts, commits, `b ACCEPT {"referenceId":"c1"} AGREEING`, timeout}, insights.Stalled, 0},
		"commitment to one":     {asp, []string{accepts, `a COMMIT→ {"commitmentId":"c1"} AGREEING`, `b ACCEPT {"referenceId":"c1"} EXECUTING`, failed}, insights.Agreed, 3},
		"commitment is open":    {asp, []string{accepts, commits, `a ESCALATE {} ESCALATED`, `h CLOSE {} CLOSED`}, insights.Failed, 0},
		"commitment taken back": {asp, []string{accepts, commits, `a WITHDRAW {"referenceId":"c1"} CONVERSING`, `b CLOSE {} CLOSED`}, insights.Agreed, 4},
		"converged":             {convergent, []string{accepts, `a CLOSE {"outcome":"abandoned"} CLOSED`}, insights.Failed, 0},
		"converged, committed":  {convergent, []string{accepts, `a COMMIT {"commitmentId":"c1","referenceId":"p1"} EXECUTING`, `a CLOSE {} CLOSED`}, insights.Agreed, 2},
		"accepted":              {`"binding/1"`, []string{`b ACCEPT {"referenceId":"p1"} CLOSED`}, insights.Agreed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Date(2026, 3, 7, 14, 0, 0, 0, time.UTC)
			var entries [][]byte
			opens := []string{`a PROPOSE {"proposalId":"i","type":"session-invitation","terms":{"mode":` + c.mode + `}} INVITED`, `b ACCEPT {"referenceId":"i"} INVITED`, `c ACCEPT {"referenceId":"i"} INTRODUCED`, `a PROPOSE {"proposalId":"p1","terms":{}} CONVERSING`}
			for i, said := range append(opens, c.acts...) {
				sender, rest, _ := strings.Cut(said, " ")
				act, rest, _ := strings.Cut(rest, " ")
				at := strings.LastIndex(rest, " ")
				recipient, joined := "", ""
				if act = strings.TrimSuffix(act, "→"); strings.Contains(said, "→") {
					recipient = `"recipient":"agent://x.example/b",`
				}
				if i == 0 {
					joined = `,"joined":[{"agentId":"agent://x.example/a","authority":"principal"},{"agentId":"agent://x.example/b","authority":"principal"},{"agentId":"agent://x.example/c","authority":"principal"}]`
				}
				if !strings.Contains(sender, ":") {
					sender = "agent://x.example/" + sender
				}
				entries = append(entries, fmt.Appendf(nil, `{"messageId":"m%d","performative":%q,"sender":{"agentId":%q},%s"content":{"body":%s},"integrity":{"receipt":{"acceptedAt":%q,"state":%q}%s}}`,
					i, act, sender, recipient, rest[:at], began.Add(time.Duration(i)*time.Minute).Format(time.RFC3339), rest[at+1:], joined))
			}
			var agreed time.Time
			if c.agreed > 0 {
				agreed = began.Add(time.Duration(len(opens)+c.agreed-1) * time.Minute)
			}
			if d, err := insights.Read(entries); err != nil || d.End != c.end || !d.Agreed.Equal(agreed) {
				t.Errorf("%+v, %v: want end %d at %s", d, err, c.end, agreed)
			}
		})
	}
}
