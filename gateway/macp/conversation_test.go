package macpgateway_test

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/parley-asp/parley/gateway/macp/pb"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

var update = flag.Bool("update", false, "write the answers in testdata again")

const modeURI = "macp.mode.proposal.v1"

// A world is a broker that speaks MACP, and a connection to it.
type world struct {
	*testkit.World
	conn *grpc.ClientConn
	pb.MACPRuntimeServiceClient

	bearers  map[string]string // by name; a name without one is its own
	messages int
}

func newWorld(t *testing.T, o testkit.Options) *world {
	t.Helper()
	o.MACP = "127.0.0.1:0"
	w := &world{World: testkit.NewWorld(t, o), bearers: map[string]string{}}
	w.conn = w.dial()
	w.MACPRuntimeServiceClient = pb.NewMACPRuntimeServiceClient(w.conn)
	return w
}

func (w *world) dial() *grpc.ClientConn {
	w.Helper()
	conn, err := grpc.NewClient(w.MACPAddr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	testkit.Must(w, err)
	w.Cleanup(func() { conn.Close() })
	return conn
}

// as is the context of a call of somebody.
func (w *world) as(name string) context.Context {
	bearer, has := w.bearers[name]
	if !has {
		bearer = name
	}
	return metadata.AppendToOutgoingContext(w.Ctx, "authorization", "Bearer "+bearer)
}

// sessionID is a UUID of version 4 by a short name.
func sessionID(name string) string {
	id := uuid.NewSHA1(uuid.NameSpaceOID, []byte(name))
	id[6] = id[6]&0x0f | 0x40
	return id.String()
}

var payloads = map[string]func() proto.Message{
	"SessionStart":    func() proto.Message { return &pb.SessionStartPayload{} },
	"Proposal":        func() proto.Message { return &pb.ProposalPayload{} },
	"CounterProposal": func() proto.Message { return &pb.CounterProposalPayload{} },
	"Accept":          func() proto.Message { return &pb.AcceptPayload{} },
	"Reject":          func() proto.Message { return &pb.RejectPayload{} },
	"Withdraw":        func() proto.Message { return &pb.WithdrawPayload{} },
	"Commitment":      func() proto.Message { return &pb.CommitmentPayload{} },
}

// envelope is a message with a payload in JSON.
func (w *world) envelope(sender, kind, session, payload string) *pb.Envelope {
	w.Helper()
	p := payloads[kind]()
	testkit.Must(w, protojson.Unmarshal([]byte(payload), p))
	data, err := proto.Marshal(p)
	testkit.Must(w, err)
	w.messages++
	return &pb.Envelope{
		MacpVersion: "1.0", Mode: modeURI, MessageType: kind, MessageId: fmt.Sprintf("message-%d", w.messages), SessionId: sessionID(session),
		Sender: sender, TimestampUnixMs: int64(1_700_000_000_000 + w.messages), Payload: data,
	}
}

const versions = `"modeVersion":"1.0.0","configurationVersion":"cfg-1"`

// says sends a message.
func (w *world) says(sender, kind, session, payload string) *pb.Ack {
	w.Helper()
	return w.sends(sender, w.envelope(sender, kind, session, payload))
}

func (w *world) sends(sender string, e *pb.Envelope) *pb.Ack {
	w.Helper()
	answer, err := w.MACPRuntimeServiceClient.Send(w.as(sender), &pb.SendRequest{Envelope: e})
	testkit.Must(w, err)
	return answer.GetAck()
}

// must says what has to be accepted.
func (w *world) must(sender, kind, session, payload string) {
	w.Helper()
	if a := w.says(sender, kind, session, payload); !a.GetOk() {
		w.Fatalf("%s %s %s: %v", sender, kind, payload, a.GetError())
	}
}

func (w *world) starts(initiator, session string, participants ...string) {
	w.Helper()
	w.must(initiator, "SessionStart", session, `{"intent":"cups","participants":["`+strings.Join(participants, `","`)+`"],"ttlMs":"60000",`+versions+`}`)
}

func base64Of(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

func shown(t testing.TB, m proto.Message) string {
	t.Helper()
	data, err := protojson.Marshal(m)
	testkit.Must(t, err)
	data, err = performatives.Canonical(data)
	testkit.Must(t, err)
	return string(data)
}

// answered is an acknowledgement in a line.
func answered(a *pb.Ack) string {
	state := strings.TrimPrefix(a.GetSessionState().String(), "SESSION_STATE_")
	if !a.GetOk() {
		return strings.TrimSpace(fmt.Sprintf("%s %s", a.GetError().GetCode(), map[bool]string{true: state}[state != "UNSPECIFIED"]))
	}
	return "ok " + state + map[bool]string{true: " duplicate"}[a.GetDuplicate()]
}

func failed(err error, trailer metadata.MD) string {
	return fmt.Sprintf("%s %s", status.Code(err), strings.Join(trailer.Get("macp-error-code"), ""))
}

// reads returns n messages of a session after a number, or all that there are until it is over if n is below zero.
func (w *world) reads(who, session string, after uint64, n int) (got []*pb.Envelope) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.as(who))
	defer cancel()
	s, err := w.StreamSession(ctx)
	testkit.Must(w, err)
	testkit.Must(w, s.Send(&pb.StreamSessionRequest{SubscribeSessionId: session, AfterSequence: after}))
	testkit.Must(w, s.CloseSend()) // it says nothing more, and reads on
	for n < 0 || len(got) < n {
		r, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return got
		}
		testkit.Must(w, err)
		if r.GetError() != nil {
			w.Fatalf("the stream says %v", r.GetError())
		}
		got = append(got, r.GetEnvelope())
	}
	return got
}

// line plays one line of a conversation, and returns what is answered.
func (w *world) line(line string) string {
	w.Helper()
	words := strings.SplitN(line, " ", 4)
	if len(words) < 3 {
		w.Fatalf("want who, what and where: %s", line)
	}
	who, what, session := words[0], words[1], words[2]
	rest := strings.Join(words[3:], "")
	var trailer metadata.MD
	switch what {
	case "stream":
		after, err := strconv.Atoi(rest)
		testkit.Must(w, err)
		var b strings.Builder
		for i, e := range w.reads(who, sessionID(session), uint64(max(after, 0)), -1) {
			p := payloads[e.GetMessageType()]()
			testkit.Must(w, proto.Unmarshal(e.GetPayload(), p))
			fmt.Fprintf(&b, "\n  %d %s %s %s", after+i+1, e.GetSender(), e.GetMessageType(), shown(w, p))
		}
		return b.String()
	case "get":
		got, err := w.GetSession(w.as(who), &pb.GetSessionRequest{SessionId: sessionID(session)}, grpc.Trailer(&trailer))
		if err != nil {
			return failed(err, trailer)
		}
		m := got.GetMetadata()
		if m.GetExpiresAtUnixMs() <= m.GetStartedAtUnixMs() {
			w.Errorf("it expires at %d, and was started at %d", m.GetExpiresAtUnixMs(), m.GetStartedAtUnixMs())
		}
		m.SessionId, m.StartedAtUnixMs, m.ExpiresAtUnixMs = session, 0, 0
		return shown(w, m)
	case "cancel":
		got, err := w.CancelSession(w.as(who), &pb.CancelSessionRequest{SessionId: sessionID(session), Reason: rest}, grpc.Trailer(&trailer))
		if err != nil {
			return failed(err, trailer)
		}
		return answered(got.GetAck())
	case "policy":
		got, err := w.RegisterPolicy(w.as(who), &pb.RegisterPolicyRequest{PolicyDescriptor: &pb.PolicyDescriptor{
			PolicyId: session, Mode: modeURI, Rules: rest, SchemaVersion: 1,
		}}, grpc.Trailer(&trailer))
		if err != nil {
			return failed(err, trailer)
		}
		return strings.TrimSpace(fmt.Sprintf("%t %s", got.GetOk(), got.GetError()))
	default:
		return answered(w.says(who, what, session, rest))
	}
}

// The conversations in testdata: who says what in which session, and what is answered. Senders
// are as in MACP's dev mode.
func TestConversations(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	testkit.Must(t, err)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			testkit.Must(t, err)
			w := newWorld(t, testkit.Options{Dev: true})
			var played strings.Builder
			for line := range strings.Lines(string(data)) {
				said, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " => ")
				switch {
				case strings.HasPrefix(line, "  "): // an answer's
				case said == "" || strings.HasPrefix(said, "#"):
					fmt.Fprintln(&played, said)
				default:
					fmt.Fprintf(&played, "%s => %s\n", said, w.line(said))
				}
			}
			if *update {
				testkit.Must(t, os.WriteFile(file, []byte(played.String()), 0o644)) //nolint:gosec // it is checked in
			} else if played.String() != string(data) {
				t.Errorf("%s is answered otherwise:\n%s", file, played.String())
			}
		})
	}
}
