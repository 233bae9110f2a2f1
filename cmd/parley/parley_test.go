package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// TestMain lets the scripts of testdata run this program, and two more that
// stand in for what is around it.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"parley": main, "await": await, "converse": converse, "browse": browse})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			for _, name := range []string{"PARLEY_LISTEN", "PARLEY_HTTP"} {
				env.Setenv(name, testkit.FreeAddress(t))
			}
			env.Setenv("PARLEY_URL", "nats://"+env.Getenv("PARLEY_LISTEN"))
			env.Setenv("PARLEY_DATA", filepath.Join(env.WorkDir, "data"))
			env.Setenv("HOME", env.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "mode": mode, "replace": replace, "keep": keep, "prefix": prefix, "terminate": terminate, "cut": cut, "holds": holds, "capture": capture, "eventually": eventually,
		},
	})
}

// exits runs a program and insists on its exit status: exits 2 parley nonsense.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	status := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		status = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got := fmt.Sprint(status); got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}

// mode insists on a file's permissions: mode 600 alpha.nk.
func mode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%o", info.Mode().Perm()); got != args[0] {
		ts.Fatalf("%s has mode %s, want %s", args[1], got, args[0])
	}
}

// replace changes a file once: replace FILE OLD NEW.
func replace(ts *testscript.TestScript, _ bool, args []string) {
	name := ts.MkAbs(args[0])
	text, err := os.ReadFile(name)
	ts.Check(err)
	if !strings.Contains(string(text), args[1]) {
		ts.Fatalf("%s has no %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(name, []byte(strings.Replace(string(text), args[1], args[2], 1)), 0o600))
}

// cut writes a file without its last line: cut FROM TO.
func cut(ts *testscript.TestScript, _ bool, args []string) {
	text := strings.TrimSuffix(ts.ReadFile(args[0]), "\n")
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text[:strings.LastIndexByte(text, '\n')+1]), 0o600))
}

// holds checks that files of a folder have a text: holds FOLDER TEXT.
func holds(ts *testscript.TestScript, not bool, args []string) {
	held := false
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, file fs.DirEntry, err error) error {
		if err != nil || file.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		held = held || bytes.Contains(data, []byte(args[1]))
		return err
	}))
	if held == not {
		ts.Fatalf("that %s holds %q: %t", args[0], args[1], held)
	}
}

// terminate sends SIGTERM to what runs in the background.
func terminate(ts *testscript.TestScript, _ bool, _ []string) {
	for _, running := range ts.BackgroundCmds() {
		if err := running.Process.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) { // one that waits on another ends with it
			ts.Check(err)
		}
	}
}

// hangup sends SIGHUP to what runs in the background.
func hangup(ts *testscript.TestScript, _ bool, _ []string) {
	for _, running := range ts.BackgroundCmds() {
		ts.Check(running.Process.Signal(syscall.SIGHUP))
	}
}

// capture puts what a regular expression's group matches in the output into a variable:
// capture TENDER 'Tender (.+) with'.
func capture(ts *testscript.TestScript, _ bool, args []string) {
	match := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout") + ts.ReadFile("stderr"))
	if len(match) != 2 {
		ts.Fatalf("the output has no %s", args[1])
	}
	ts.Setenv(args[0], match[1])
}

// prefix puts the first characters of a text into a variable: prefix NAME TEXT LENGTH.
func prefix(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	ts.Setenv(args[0], args[1][:n])
}

// keep puts the words of standard output into variables: keep SESSION ESCALATION.
func keep(ts *testscript.TestScript, _ bool, names []string) {
	words := strings.Fields(ts.ReadFile("stdout"))
	if len(words) != len(names) {
		ts.Fatalf("%d words on standard output, want %d", len(words), len(names))
	}
	for i, name := range names {
		ts.Setenv(name, words[i])
	}
}

const (
	alpha = performatives.Agent("agent://acme.com/procurement/alpha")
	beta  = performatives.Agent("agent://widgets.co/sales/beta")
)

// await returns when the broker whose HTTP is at PARLEY_HTTP serves.
func await() {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	check(testkit.Serving(ctx, http.DefaultClient, "http://"+os.Getenv("PARLEY_HTTP")+"/healthz"))
}

// eventually runs a program until it succeeds.
func eventually(ts *testscript.TestScript, _ bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	var err error
	if testkit.Until(ctx, func() bool { err = ts.Exec(args[0], args[1:]...); return err == nil }) != nil {
		ts.Fatalf("%v: %v", args, err)
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// converse says what two agents say, who sign with alpha.nk and beta.nk where
// these are, and prints the session:
//
//	converse deal            from the invitation to the end
//	converse escalate        up to an ESCALATE; prints the session and the escalation
//	converse match           up to an ACCEPT that people confirm; prints the session and both items
//	converse finish SESSION  from there, once a human has ruled
func converse() {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	a, b := speaker(ctx, alpha, "alpha.nk"), speaker(ctx, beta, "beta.nk")
	defer a.Close()
	defer b.Close()
	switch os.Args[1] {
	case "deal":
		s := open(ctx, a, b)
		must(s.Propose(ctx, client.Proposal{ID: "prop_1", Type: "service-agreement", Subject: "Log ingestion", Terms: map[string]any{"throughput": 5000, "price": 250, "trial": true}}))
		must(b.Session(s.ID()).Counter(ctx, "prop_1", client.Proposal{ID: "prop_2", Terms: map[string]any{"throughput": 5000, "price": 300, "region": "eu"}}))
		must(s.Accept(ctx, "prop_2"))
		must(s.Close(ctx, client.Closing{Outcome: performatives.Completed, Summary: "agreed at 300"}))
		fmt.Println(s.ID())
	case "escalate":
		s := open(ctx, a, b)
		must(b.Session(s.ID()).Propose(ctx, client.Proposal{ID: "prop_40", Type: "service-agreement", Subject: "Analytics", Terms: map[string]any{"pricePerMonth": 15000, "seats": 12}}))
		asked := must(s.Escalate(ctx, client.Escalation{Reason: client.AuthorityLimit, Urgency: client.High, Context: "over my limit", About: "prop_40"}))
		fmt.Println(s.ID())
		fmt.Println(asked.ID)
	case "match": // agreed in bilateral/1, for people to confirm
		s := must(a.Invite(ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "A match", Mode: "bilateral/1", Policy: map[string]any{"confirm": true}}))
		must(b.Session(s.ID()).Accept(ctx, "inv"))
		fits := client.Assess(map[string]any{"reasoning": "it fits", "suggestedRoles": map[string]string{"ownUser": "peer", "otherUser": "peer"}})
		offered := must(s.Propose(ctx, client.Proposal{ID: "prop_1", Type: "opportunity", Subject: "A boat for two", Terms: map[string]any{"days": 3}}, fits))
		agreed := must(b.Session(s.ID()).Accept(ctx, "prop_1", fits))
		fmt.Println(s.ID())
		fmt.Println(offered.Message)
		fmt.Println(agreed.Message)
	case "delegate": // to a human, with the authority and the human that are named
		s := open(ctx, a, b)
		must(s.Propose(ctx, client.Proposal{ID: "prop_40", Type: "service-agreement", Subject: "Customer analytics", Terms: map[string]any{"region": "eu", "retentionDays": 30}}))
		must(b.Session(s.ID()).Counter(ctx, "prop_40", client.Proposal{ID: "prop_41", Terms: map[string]any{"region": "eu", "retentionDays": 90}}))
		must(s.Delegate(ctx, performatives.Agent(os.Args[3]), client.Delegation{
			Scope: "Verify that proposed data handling terms comply with GDPR Article 28", Authority: os.Args[2],
		}))
		fmt.Println(s.ID())
	case "finish":
		s := a.Session(performatives.SessionID(os.Args[2]))
		must(s.Accept(ctx, "prop_40"))
		must(s.Close(ctx, client.Closing{Outcome: performatives.Completed}))
	}
}

func speaker(ctx context.Context, a performatives.Agent, file string) *client.Client {
	key := client.Unsigned()
	if exists(file) {
		key = client.SeedFile(file)
	}
	return must(client.Connect(ctx, os.Getenv("PARLEY_URL"), a, key))
}

func open(ctx context.Context, a, b *client.Client) *client.Session {
	s := must(a.Invite(ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "Log ingestion"}))
	must(b.Session(s.ID()).Accept(ctx, "inv"))
	return s
}

func must[T any](v T, err error) T {
	check(err)
	return v
}
