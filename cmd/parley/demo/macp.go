package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/parley-asp/parley/gateway/macp/pb"
)

// messages are what agents send over MACP.
type messages struct {
	*player
	conn *grpc.ClientConn
}

func newMessages(p *player) (face, error) {
	conn, err := grpc.NewClient(p.stage.macp, grpc.WithTransportCredentials(insecure.NewCredentials()))
	return &messages{p, conn}, err
}

func (m *messages) close() {
	m.conn.Close() //nolint:errcheck // each message was acknowledged
}

// payloads of the messages of MACP's proposal mode.
var payloads = map[string]proto.Message{
	"SessionStart": &pb.SessionStartPayload{}, "Proposal": &pb.ProposalPayload{}, "CounterProposal": &pb.CounterProposalPayload{},
	"Accept": &pb.AcceptPayload{}, "Commitment": &pb.CommitmentPayload{},
}

// say sends a message.
func (m *messages) say(ctx context.Context, a *actor, kind string, body jsontext.Value, _ *actor) (string, error) {
	known, there := payloads[kind]
	if !there {
		return "", fmt.Errorf("the demo knows no %s", kind)
	}
	payload := proto.CloneOf(known)
	if err := protojson.Unmarshal(body, payload); err != nil {
		return "", err
	}
	data, err := proto.Marshal(payload)
	if err != nil {
		return "", err
	}
	answer, err := pb.NewMACPRuntimeServiceClient(m.conn).Send(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+a.token), &pb.SendRequest{Envelope: &pb.Envelope{
		MacpVersion: "1.0", Mode: "macp.mode.proposal.v1", MessageType: kind, MessageId: uuid.NewString(), SessionId: string(m.session),
		Sender: string(a.Agent()), TimestampUnixMs: time.Now().UnixMilli(), Payload: data,
	}})
	if err != nil {
		return "", err
	}
	ack := answer.GetAck()
	if !ack.GetOk() {
		return "", fmt.Errorf("refused: %s %s", ack.GetError().GetCode(), ack.GetError().GetMessage())
	}
	result := ack.GetSessionState().String()
	return result, m.did(ctx, a, "sends "+kind+" → "+result)
}
