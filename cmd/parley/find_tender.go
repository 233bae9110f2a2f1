package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client/tender"
	"github.com/parley-asp/parley/performatives"
)

// tenderRequest says what parley find --tender asks for.
type tenderRequest struct{ terms, schema string }

// run invites the best agents to a tender, and decides it.
func (r tenderRequest) run(cmd *cobra.Command, o *tenderOptions, q api.CallForProposals, among int) error {
	if among > tender.Most {
		return usage(fmt.Errorf("--tender compares at most %d agents", tender.Most))
	}
	q.Limit = max(q.Limit, among)
	terms, err := readTerms(r.terms)
	if err != nil {
		return err
	}
	return o.run(cmd, func(ctx context.Context, c connection) (*tender.Tender, error) {
		found, err := c.Find(ctx, q)
		if err != nil {
			return nil, err
		}
		if !asked(cmd, "json") {
			if err := say(cmd, render.Proposals(found, style(cmd))+"\n"); err != nil {
				return nil, err
			}
		}
		var agents []performatives.Agent
		for _, candidate := range found.Candidates {
			if candidate.Accepted && candidate.Agent != c.principal.Agent() && len(agents) < among {
				agents = append(agents, candidate.Agent)
			}
		}
		if len(agents) == 0 {
			return nil, errors.New("nobody to invite: no agent takes the task")
		}
		t, err := tender.New(c.principal, tender.Request{Subject: q.Summary, Schema: r.schema, Terms: terms})
		if err != nil {
			return nil, err
		}
		note(cmd, fmt.Sprintf("Tender %s with %s.", t.ID, render.Count(len(agents), "agent", "agents")))
		return t, t.Invite(ctx, agents, o.within)
	})
}

// readTerms reads terms from a file of JSON or YAML.
func readTerms(name string) (terms map[string]any, err error) {
	if name == "" {
		return nil, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, usage(fmt.Errorf("--terms: %w", err))
	}
	if err := readYAML(data, &terms); err != nil {
		return nil, usage(fmt.Errorf("--terms %s is no object of JSON or YAML: %w", name, err))
	}
	if terms == nil {
		return nil, usage(fmt.Errorf("--terms %s is no object of JSON or YAML", name))
	}
	return terms, nil
}

// readYAML reads YAML, or JSON, which is YAML too. What is meant as JSON is told its fault as JSON,
// by line and column.
func readYAML(data []byte, into any) error {
	err := yaml.Unmarshal(data, into)
	if err != nil && strings.HasPrefix(strings.TrimSpace(string(data)), "{") {
		if _, fault := performatives.Canonical(data); fault != nil {
			return fault
		}
	}
	return err
}
