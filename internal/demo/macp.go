package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/gateway/macp/pb"
	"github.com/parley-asp/parley/performatives"
)

// overMACP is a session in convergent/1 that two agents hold in MACP's proposal mode.
func overMACP() scene {
	const (
		vendor   = performatives.Agent("agent://vendor.example/macp-vendor")
		customer = performatives.Agent("agent://client.example/macp-client")
	)
	return scene{
		name: "macp", title: "Rounds until both agree, over MACP",
		shows:   "Two agents send MACP's messages of the proposal mode. They counter until both have accepted the same proposal; then the vendor commits.",
		opening: client.Invitation{Mode: "convergent/1"},
		cast: []role{
			{agent: vendor, name: "Vendor", kind: performatives.KindSystem},
			{agent: customer, name: "Client", kind: performatives.KindSystem},
		},
		script:  negotiateByMessages,
		steps:   "PROPOSE → ACCEPT → PROPOSE → COUNTER → COUNTER → ACCEPT → ACCEPT → COMMIT → CLOSE",
		agreed:  "p3",
		outcome: performatives.Completed,
	}
}

func negotiateByMessages(ctx context.Context, t *talk) error {
	conn, err := grpc.NewClient(t.stage.macp, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // each message was acknowledged
	t.id = performatives.SessionID(uuid.Must(uuid.NewV7()).String())
	vendor, customer := t.cast[0], t.cast[1]
	const version, configuration = "1.0.0", "demo"
	for _, message := range []struct {
		from    *actor
		payload proto.Message
	}{
		{vendor, &pb.SessionStartPayload{
			Intent: "Negotiate service contract terms", Participants: []string{string(vendor.Agent()), string(customer.Agent())},
			TtlMs: sessionTime.Milliseconds(), ModeVersion: version, ConfigurationVersion: configuration,
		}},
		{vendor, &pb.ProposalPayload{ProposalId: "p1", Title: "Plan A", Summary: "$50k, 6 months"}},
		{customer, &pb.CounterProposalPayload{ProposalId: "p2", SupersedesProposalId: "p1", Title: "Plan A Revised", Summary: "$45k, 12 months"}},
		{vendor, &pb.CounterProposalPayload{ProposalId: "p3", SupersedesProposalId: "p2", Title: "Plan A Final", Summary: "$47k, 12 months, quarterly reviews"}},
		{customer, &pb.AcceptPayload{ProposalId: "p3", Reason: "terms acceptable"}},
		{vendor, &pb.AcceptPayload{ProposalId: "p3", Reason: "agreed"}},
		{vendor, &pb.CommitmentPayload{
			CommitmentId: "c1", Action: "contract.agreed", AuthorityScope: "sales", Reason: "Both parties accepted p3", OutcomePositive: true,
			ModeVersion: version, ConfigurationVersion: configuration,
		}},
	} {
		if err := t.send(ctx, pb.NewMACPRuntimeServiceClient(conn), message.from, message.payload); err != nil {
			return err
		}
	}
	if _, err := vendor.Session(t.id).Close(ctx, client.Closing{Summary: "The contract is in force", Outcome: performatives.Completed}); err != nil {
		return err
	}
	return t.did(ctx, vendor, "sends CLOSE over HTTP, because MACP has no message for it")
}

// send sends a message of MACP's proposal mode, whose type is the name of its payload.
func (t *talk) send(ctx context.Context, runtime pb.MACPRuntimeServiceClient, from *actor, payload proto.Message) error {
	kind := strings.TrimSuffix(string(payload.ProtoReflect().Descriptor().Name()), "Payload")
	data, err := proto.Marshal(payload)
	if err != nil {
		return err
	}
	answer, err := runtime.Send(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+from.token), &pb.SendRequest{Envelope: &pb.Envelope{
		MacpVersion: "1.0", Mode: "macp.mode.proposal.v1", MessageType: kind, MessageId: uuid.NewString(), SessionId: string(t.id),
		Sender: string(from.Agent()), TimestampUnixMs: time.Now().UnixMilli(), Payload: data,
	}})
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	ack := answer.GetAck()
	if !ack.GetOk() {
		return fmt.Errorf("%s is refused: %s %s", kind, ack.GetError().GetCode(), ack.GetError().GetMessage())
	}
	return t.did(ctx, from, "sends "+kind+" → "+ack.GetSessionState().String())
}
