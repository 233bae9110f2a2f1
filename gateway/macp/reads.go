package macpgateway

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway/macp/pb"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Initialize says what there is.
func (g *Gateway) Initialize(ctx context.Context, q *pb.InitializeRequest) (*pb.InitializeResponse, error) {
	switch {
	case len(q.GetSupportedProtocolVersions()) == 0:
		return nil, g.status(ctx, problem{invalidRequest, "supported_protocol_versions is not empty"})
	case !slices.Contains(q.GetSupportedProtocolVersions(), version):
		return nil, g.status(ctx, problem{unsupportedVersion, "the protocol version here is " + version})
	}
	return &pb.InitializeResponse{
		SelectedProtocolVersion: version,
		RuntimeInfo: &pb.RuntimeInfo{
			Name: "parley", Title: "parley", Version: api.Version, Description: "a session broker for negotiating agents, with MACP's proposal mode",
		},
		Capabilities: &pb.Capabilities{
			Sessions: &pb.SessionsCapability{Stream: true}, Cancellation: &pb.CancellationCapability{CancelSession: true},
			ModeRegistry: &pb.ModeRegistryCapability{ListModes: true}, PolicyRegistry: &pb.PolicyRegistryCapability{RegisterPolicy: true, ListPolicies: true},
		},
		SupportedModes: []string{modeURI},
		Instructions:   "Send Authorization: Bearer <token> with every call. Sessions are in " + modeURI + ".",
	}, nil
}

// ListModes lists the one mode.
func (g *Gateway) ListModes(ctx context.Context, _ *pb.ListModesRequest) (*pb.ListModesResponse, error) {
	if _, err := g.enter(ctx); err != nil {
		return nil, g.status(ctx, err)
	}
	return &pb.ListModesResponse{Modes: []*pb.ModeDescriptor{{
		Mode: modeURI, ModeVersion: modeVersion, Title: "Proposal", Description: "peers refine proposals until all accept the same one",
		DeterminismClass: "semantic-deterministic", ParticipantModel: "peer", MessageTypes: messageTypes, TerminalMessageTypes: []string{commitment},
	}}}, nil
}

// GetSession answers with a session's metadata.
func (g *Gateway) GetSession(ctx context.Context, q *pb.GetSessionRequest) (*pb.GetSessionResponse, error) {
	m, err := g.metadata(ctx, q.GetSessionId())
	if err != nil {
		return nil, g.status(ctx, err)
	}
	return &pb.GetSessionResponse{Metadata: m}, nil
}

func (g *Gateway) metadata(ctx context.Context, name string) (*pb.SessionMetadata, error) {
	c, err := g.enter(ctx)
	if err != nil {
		return nil, err
	}
	id, err := g.find(ctx, name)
	if err != nil {
		return nil, none(err)
	}
	h, err := g.history(ctx, c, id, name)
	if err != nil {
		return nil, none(err)
	}
	v := h.view
	m := &pb.SessionMetadata{
		SessionId: name, Mode: modeURI, State: v.state(), ModeVersion: h.start.GetModeVersion(), ConfigurationVersion: h.start.GetConfigurationVersion(),
		PolicyVersion: h.start.GetPolicyVersion(), Participants: h.start.GetParticipants(), ContextId: h.start.GetContextId(), Initiator: h.names[v.Invitation.From],
	}
	for key := range h.start.GetExtensions() {
		m.ExtensionKeys = append(m.ExtensionKeys, key)
	}
	slices.Sort(m.ExtensionKeys)
	if at, err := time.Parse(time.RFC3339Nano, v.Created); err == nil {
		m.StartedAtUnixMs = at.UnixMilli()
		m.ExpiresAtUnixMs = at.UnixMilli() + h.start.GetTtlMs()
	}
	for _, d := range v.Deadlines {
		if at, err := time.Parse(time.RFC3339Nano, d.At); err == nil && d.Code == session.SessionTimeout {
			m.ExpiresAtUnixMs = at.UnixMilli()
		}
	}
	return m, nil
}

// none is the answer of reads to who has no part in a session.
func none(err error) error {
	if errors.Is(hidden(err), noPart) {
		return problem{sessionNotFound, noPart.why}
	}
	return err
}

// state is a session's in MACP. A commitment resolves it; what comes after is parley's own.
func (v view) state() pb.SessionState {
	switch {
	case v.part.Projection.Phase == "Committed":
		return pb.SessionState_SESSION_STATE_RESOLVED
	case v.State == session.Escalated:
		return pb.SessionState_SESSION_STATE_SUSPENDED
	case v.State == session.Failed:
		return pb.SessionState_SESSION_STATE_EXPIRED
	case v.State == session.Closed:
		return pb.SessionState_SESSION_STATE_CANCELLED
	default:
		return pb.SessionState_SESSION_STATE_OPEN
	}
}

// CancelSession closes a session, or takes its invitation back.
func (g *Gateway) CancelSession(ctx context.Context, q *pb.CancelSessionRequest) (*pb.CancelSessionResponse, error) {
	c, err := g.acting(ctx)
	if err != nil {
		return nil, g.status(ctx, err)
	}
	id, err := g.find(ctx, q.GetSessionId())
	var v view
	if err == nil {
		v, err = c.view(ctx, id)
	}
	if err != nil {
		return nil, g.status(ctx, none(err))
	}
	ack := &pb.Ack{Ok: true, SessionId: q.GetSessionId(), AcceptedAtUnixMs: time.Now().UnixMilli(), SessionState: v.state()}
	if ack.GetSessionState() == pb.SessionState_SESSION_STATE_OPEN || ack.GetSessionState() == pb.SessionState_SESSION_STATE_SUSPENDED {
		if err := g.close(ctx, c, v, q.GetReason()); err != nil {
			return nil, g.status(ctx, none(err))
		}
		ack.SessionState = pb.SessionState_SESSION_STATE_CANCELLED
	}
	return &pb.CancelSessionResponse{Ack: ack}, nil
}

func (g *Gateway) close(ctx context.Context, c caller, v view, reason string) error {
	said := api.Say{Session: v.Session, Performative: performatives.Close.String()}
	body := map[string]any{"outcome": "abandoned", "reason": reason}
	if v.State == session.Invited {
		said.Performative, body = performatives.Withdraw.String(), reasoned(v.Invitation.Proposal, reason)
	}
	data, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		return invalid("the reason is not UTF-8")
	}
	said.Body = jsontext.Value(data)
	_, err = c.Say(ctx, said)
	if errors.Is(err, &session.Refusal{Code: session.UnknownSession}) {
		return noPart
	}
	return err
}
