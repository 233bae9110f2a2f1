package macpgateway_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway/macp/pb"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/testkit"
)

// A SessionStart that the broker refuses keeps nothing, and its session_id is free.
func TestRefusedStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{Dev: true})
	w.is(w.says("a", "SessionStart", "s1", `{"participants":["a"],"ttlMs":"60000",`+versions+`}`), "INVALID_ENVELOPE")
	records, err := w.Server.Broker.Parts.Store.Bucket(w.Ctx, api.MACPBucket, "", 0)
	testkit.Must(t, err)
	sum := sha256.Sum256([]byte(sessionID("s1")))
	if _, err := records.Get(w.Ctx, "session."+hex.EncodeToString(sum[:])); !errors.Is(err, store.ErrNoKey) {
		t.Errorf("a session that there is not has a record: %v", err)
	}
	w.starts("b", "s1", "b", "c")
}

// Of all who start a session under one session_id at the same time, one does.
func TestSameName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Options{Dev: true})
	const starters = 8
	var starts [starters]*pb.Envelope
	var answers [starters]string
	for i := range starters {
		who := fmt.Sprintf("a%d", i)
		starts[i] = w.envelope(who, "SessionStart", "s1", `{"participants":["`+who+`","b"],"ttlMs":"60000",`+versions+`}`)
	}
	var all sync.WaitGroup
	for i, e := range starts {
		all.Go(func() {
			answer, err := w.MACPRuntimeServiceClient.Send(w.as(e.GetSender()), &pb.SendRequest{Envelope: e})
			answers[i] = fmt.Sprint(err)
			if err == nil {
				answers[i] = answered(answer.GetAck())
			}
		})
	}
	all.Wait()
	started := ""
	for i, got := range answers {
		switch {
		case got == "ok OPEN" && started == "":
			started = starts[i].GetSender()
		case got != "SESSION_ALREADY_EXISTS":
			t.Errorf("%s is answered %s", starts[i].GetSender(), got)
		}
	}
	for i, e := range starts {
		want := "SESSION_ALREADY_EXISTS"
		if e.GetSender() == started {
			want = "ok OPEN duplicate"
		}
		if w.is(w.sends(e.GetSender(), starts[i]), want); started == "" {
			t.Fatal("nobody starts it")
		}
	}
	w.must(started, "Proposal", "s1", `{"proposalId":"p1","title":"A"}`)
}
