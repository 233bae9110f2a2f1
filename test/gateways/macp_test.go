//go:build gateways

package gateways

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// TestMACP has MACP's Python SDK play sessions of its proposal mode, each case of macp_cases.py by itself.
func TestMACP(t *testing.T) {
	page, err := filepath.Abs(filepath.Join("testdata", "macp-proposal-mode.txt"))
	testkit.Must(t, err)
	for _, name := range []string{"happy", "negative", "reject", "stream", "policy"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t, testkit.Options{Dev: true, MACP: "127.0.0.1:0"})
			_, err := python(t, []string{"MACP=" + w.MACPAddr}, "macp_cases.py", name)
			testkit.Must(t, err)
		})
	}
	t.Run("seed", func(t *testing.T) {
		t.Parallel()
		w := testkit.NewWorld(t, testkit.Options{Dev: true, MACP: "127.0.0.1:0"})
		printed, err := python(t, []string{"MACP=" + w.MACPAddr}, "macp_cases.py", "seed", page)
		testkit.Must(t, err)
		if len(strings.Fields(string(printed))) != 1 {
			t.Fatalf("it prints %q, want a session", printed)
		}
		verified(t, w, "agent://macp.local/buyer")
	})
}

// verified verifies the transcripts of all sessions of an agent.
func verified(t *testing.T, w *testkit.World, a performatives.Agent) {
	t.Helper()
	c := w.Client(a)
	list, err := client.Do(w.Ctx, c, api.SessionList, api.ListSessions{})
	testkit.Must(t, err)
	if len(list.Sessions) == 0 {
		t.Error("there is no session to verify")
	}
	for _, row := range list.Sessions {
		entries, err := c.Transcript(w.Ctx, row.Session)
		testkit.Must(t, err)
		verifier := transcript.NewVerifier(w.Server.Broker.Command.Key(), transcript.Expect{Session: row.Session})
		for _, e := range entries {
			for _, fault := range verifier.Add(e.Bytes) {
				t.Error(fault)
			}
		}
		for _, fault := range verifier.End() {
			t.Error(fault)
		}
	}
}

// TestMACPSuspended has one side on NATS, which escalates: MACP's client sees the session
// SUSPENDED until a human has decided.
func TestMACPSuspended(t *testing.T) {
	const onNATS, human = performatives.Agent("agent://widgets.co/seller"), performatives.Agent("human://widgets.co/ann")
	w := testkit.NewWorld(t, testkit.Options{Dev: true, MACP: "127.0.0.1:0"})
	c := w.Client(onNATS)
	_, err := c.Register(w.Ctx, api.Card{Agent: onNATS}) // it is not met by MACP, so it accepts itself
	testkit.Must(t, err)
	seller, ann := w.Principal(onNATS), w.Principal(human)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(*installed, "python", "bin", "python"), "macp_cases.py", "suspended")
	cmd.Env = append(os.Environ(), "MACP="+w.MACPAddr, "SELLER="+string(onNATS))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	testkit.Must(t, err)
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	printed := bufio.NewScanner(out)
	next := func(want string) {
		t.Helper()
		if !printed.Scan() || want != "" && printed.Text() != want {
			t.Fatalf("it prints %q, want %q", printed.Text(), want)
		}
	}
	goOn := func() {
		t.Helper()
		_, err := in.Write([]byte("\n"))
		testkit.Must(t, err)
	}
	next("")
	list, err := client.Do(w.Ctx, c, api.SessionList, api.ListSessions{})
	testkit.Must(t, err)
	id := list.Sessions[0].Session
	seller.Say(id, &performatives.AcceptBody{ReferenceID: "invitation"})
	seller.Say(id, testkit.Offer("p1", 80))
	asked := seller.Say(id, &performatives.EscalateBody{Reason: "authority-limit", Urgency: "high", Context: []byte(`"above my limit"`)})
	goOn()
	next("suspended")
	ann.Say(id, testkit.Ruling(asked.Message, "approved"))
	goOn()
	next("resumed")
	seller.Say(id, &performatives.AcceptBody{ReferenceID: "p1"})
	goOn()
	next("committed")
	testkit.Must(t, cmd.Wait())
	verified(t, w, onNATS)
}
