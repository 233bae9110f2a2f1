package macpgateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"google.golang.org/protobuf/proto"

	"github.com/parley-asp/parley/gateway/macp/pb"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// defaultPolicy is the policy of a session that names none.
const defaultPolicy = "policy.default"

// Bounds of an organisation's policies.
const (
	maxPolicies    = 100
	maxPolicyBytes = 16 << 10
)

var defaultDescriptor = &pb.PolicyDescriptor{
	PolicyId: defaultPolicy, Mode: "*", SchemaVersion: 1, Rules: "{}",
	Description: "all participants accept the same proposal; the initiator of three or more need not, for its Commitment says that it agrees",
}

// rulesOf are the rules that a policy of the proposal mode has (RFC-MACP-0012).
type rulesOf struct {
	Acceptance struct {
		Criterion string `json:"criterion,omitzero"`
	} `json:"acceptance,omitzero"`
	Counter struct {
		MaxRounds uint32 `json:"max_rounds,omitzero"`
	} `json:"counter_proposal,omitzero"`
	Rejection struct {
		OnAny bool `json:"terminal_on_any_reject,omitzero"`
	} `json:"rejection,omitzero"`
	Commitment struct {
		Authority  string   `json:"authority,omitzero"`
		Designated []string `json:"designated_roles,omitzero"`
	} `json:"commitment,omitzero"`
}

// readRules reads a policy's rules, and refuses those that no session could be held by.
func readRules(d *pb.PolicyDescriptor) (r rulesOf, err error) {
	given := map[string]any{}
	if json.Unmarshal([]byte(d.GetRules()), &given) != nil || given == nil {
		return r, errors.New("rules is a JSON object")
	}
	for name := range given { // annotations, and extensions of others
		if strings.HasPrefix(name, "_") || strings.HasPrefix(name, "$") {
			delete(given, name)
		}
	}
	known, err := json.Marshal(given)
	if err == nil {
		err = json.Unmarshal(known, &r, json.RejectUnknownMembers(true))
	}
	switch {
	case err != nil:
		return r, errors.New("rules has acceptance, counter_proposal, rejection and commitment, each as RFC-MACP-0012 has it, and nothing else")
	case !slices.Contains([]string{"", "all_parties", "counterparty", "initiator"}, r.Acceptance.Criterion):
		return r, errors.New("acceptance.criterion is all_parties, counterparty or initiator")
	case !slices.Contains([]string{"", "initiator_only", "any_participant", "designated_role"}, r.Commitment.Authority):
		return r, errors.New("commitment.authority is initiator_only, any_participant or designated_role")
	case r.Commitment.Authority == "designated_role" && len(r.Commitment.Designated) == 0:
		return r, errors.New("commitment.designated_roles names nobody")
	}
	return r, nil
}

// parameters are the parameters of convergent/1 that say the same as a session's policy.
func (g *Gateway) parameters(ctx context.Context, c caller, s *pb.SessionStartPayload, parties []performatives.Agent) (map[string]any, error) {
	id := s.GetPolicyVersion()
	if id == "" {
		id = defaultPolicy
	}
	p := map[string]any{"policyVersion": id, "peersClose": false}
	inside := slices.Contains(parties, c.Agent)
	if id == defaultPolicy {
		switch {
		case !inside:
			p["initiatorRole"] = "coordinator"
		case len(parties) > 2:
			p["initiatorRole"] = "chair"
		}
		return p, nil
	}
	all, _, err := g.policies(ctx, c.Agent)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(d *pb.PolicyDescriptor) bool { return d.GetPolicyId() == id })
	if at < 0 {
		return nil, problem{unknownPolicy, fmt.Sprintf("your organisation has registered no policy %q", id)}
	}
	rules, err := readRules(all[at])
	if err != nil {
		return nil, problem{invalidPolicy, err.Error()}
	}
	if !inside {
		p["initiatorRole"] = "coordinator"
	}
	if rules.Acceptance.Criterion != "" {
		p["acceptance"] = rules.Acceptance.Criterion
	}
	if rules.Counter.MaxRounds > 0 {
		p["maxRounds"] = rules.Counter.MaxRounds
	}
	if rules.Rejection.OnAny {
		p["rejection"] = "terminal_on_any_reject"
	}
	switch rules.Commitment.Authority {
	case "any_participant":
		p["commitAuthority"] = parties
	case "designated_role":
		designated := []performatives.Agent{}
		for _, name := range rules.Commitment.Designated {
			a, known := g.named(name)
			if !known {
				return nil, problem{invalidPolicy, fmt.Sprintf("designated_roles has %q, who is not registered", name)}
			}
			designated = append(designated, a)
		}
		p["commitAuthority"], p["initiatorCommits"] = designated, false
	}
	return p, nil
}

// policiesKey is where an organisation's policies are.
func policiesKey(a performatives.Agent) string {
	sum := sha256.Sum256([]byte(a.Organisation()))
	return "policies." + hex.EncodeToString(sum[:])
}

// policies are those of a principal's organisation, and the revision of their record.
func (g *Gateway) policies(ctx context.Context, a performatives.Agent) ([]*pb.PolicyDescriptor, uint64, error) {
	found, err := g.o.Records.Get(ctx, policiesKey(a))
	if errors.Is(err, store.ErrNoKey) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	all := &pb.ListPoliciesResponse{}
	err = proto.Unmarshal(found.Value, all)
	return all.GetDescriptors(), found.Revision, err
}

// changePolicies stores what change makes of the policies of the caller's organisation. Its
// error is for the client.
func (g *Gateway) changePolicies(ctx context.Context, change func([]*pb.PolicyDescriptor) ([]*pb.PolicyDescriptor, error)) (refused, err error) {
	c, err := g.acting(ctx)
	if err != nil {
		return nil, err
	}
	for range maxTries {
		all, revision, err := g.policies(ctx, c.Agent)
		if err != nil {
			return nil, err
		}
		if all, err = change(all); err != nil {
			return err, nil
		}
		data, err := proto.Marshal(&pb.ListPoliciesResponse{Descriptors: all})
		if err != nil {
			return nil, err
		}
		if revision == 0 {
			_, err = g.o.Records.Create(ctx, policiesKey(c.Agent), data)
		} else {
			_, err = g.o.Records.Update(ctx, policiesKey(c.Agent), data, revision)
		}
		if err == nil {
			return nil, g.o.Records.Sync()
		}
		if !errors.Is(err, store.ErrKeyExists) && !errors.Is(err, store.ErrConflict) {
			return nil, err
		}
	}
	return nil, session.Busy()
}

// maxTries is how often policies are changed while others change them.
const maxTries = 5

// RegisterPolicy registers a policy for the sessions that the caller's organisation starts.
func (g *Gateway) RegisterPolicy(ctx context.Context, q *pb.RegisterPolicyRequest) (*pb.RegisterPolicyResponse, error) {
	d := q.GetPolicyDescriptor()
	refused, err := g.changePolicies(ctx, func(all []*pb.PolicyDescriptor) ([]*pb.PolicyDescriptor, error) {
		if err := registrable(d, all); err != nil {
			return nil, err
		}
		if _, err := readRules(d); err != nil {
			return nil, err
		}
		own := proto.CloneOf(d)
		own.RegisteredAtUnixMs = time.Now().UnixMilli()
		return append(all, own), nil
	})
	if err != nil {
		return nil, g.status(ctx, err)
	}
	return &pb.RegisterPolicyResponse{Ok: refused == nil, Error: text(refused)}, nil
}

// registrable refuses a policy that is not one, or one too many.
func registrable(d *pb.PolicyDescriptor, all []*pb.PolicyDescriptor) error {
	id := d.GetPolicyId()
	switch {
	case strings.TrimSpace(id) == "" || len(id) > maxName:
		return fmt.Errorf("policy_id must not be empty, and has at most %d bytes", maxName)
	case id == defaultPolicy:
		return fmt.Errorf("%s is reserved", defaultPolicy)
	case d.GetMode() != modeURI && d.GetMode() != "*":
		return fmt.Errorf("policies here are of %s", modeURI)
	case d.GetSchemaVersion() != 1:
		return errors.New("schema_version of the proposal mode's policies is 1")
	case proto.Size(d) > maxPolicyBytes:
		return fmt.Errorf("a policy has at most %d bytes", maxPolicyBytes)
	case len(all) >= maxPolicies:
		return fmt.Errorf("your organisation has %d policies: remove one", maxPolicies)
	case slices.ContainsFunc(all, func(other *pb.PolicyDescriptor) bool { return other.GetPolicyId() == id }):
		return fmt.Errorf("policy %q is already registered", id)
	}
	return nil
}

// UnregisterPolicy removes a policy. Sessions that have it keep it.
func (g *Gateway) UnregisterPolicy(ctx context.Context, q *pb.UnregisterPolicyRequest) (*pb.UnregisterPolicyResponse, error) {
	refused, err := g.changePolicies(ctx, func(all []*pb.PolicyDescriptor) ([]*pb.PolicyDescriptor, error) {
		left := slices.DeleteFunc(slices.Clone(all), func(d *pb.PolicyDescriptor) bool { return d.GetPolicyId() == q.GetPolicyId() })
		if len(left) == len(all) {
			return nil, fmt.Errorf("policy %.128q is not registered", q.GetPolicyId())
		}
		return left, nil
	})
	if err != nil {
		return nil, g.status(ctx, err)
	}
	return &pb.UnregisterPolicyResponse{Ok: refused == nil, Error: text(refused)}, nil
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// GetPolicy answers with one policy.
func (g *Gateway) GetPolicy(ctx context.Context, q *pb.GetPolicyRequest) (*pb.GetPolicyResponse, error) {
	list, err := g.ListPolicies(ctx, &pb.ListPoliciesRequest{})
	if err != nil {
		return nil, err
	}
	for _, d := range list.GetDescriptors() {
		if d.GetPolicyId() == q.GetPolicyId() {
			return &pb.GetPolicyResponse{PolicyDescriptor: d}, nil
		}
	}
	return nil, g.status(ctx, problem{unknownPolicy, "your organisation has registered no such policy"})
}

// ListPolicies answers with the caller's organisation's policies, and the default one.
func (g *Gateway) ListPolicies(ctx context.Context, q *pb.ListPoliciesRequest) (*pb.ListPoliciesResponse, error) {
	c, err := g.enter(ctx)
	var all []*pb.PolicyDescriptor
	if err == nil {
		all, _, err = g.policies(ctx, c.Agent)
	}
	if err != nil {
		return nil, g.status(ctx, err)
	}
	listed := &pb.ListPoliciesResponse{}
	for _, d := range append([]*pb.PolicyDescriptor{defaultDescriptor}, all...) {
		if q.GetMode() == "" || d.GetMode() == "*" || d.GetMode() == q.GetMode() {
			listed.Descriptors = append(listed.Descriptors, d)
		}
	}
	return listed, nil
}
