package proposals

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
)

// probe asks agents elsewhere, all at once and for as long as the call waits. The function that it
// returns waits for them.
func (c *Calls) probe(ctx context.Context, caller api.Caller, q api.CallForProposals, wait time.Duration) func() ([]discovery.Candidate, []string) {
	found, failed := make([]discovery.Candidate, len(q.URLs)), make([]error, len(q.URLs))
	ctx, cancel := context.WithTimeout(ctx, wait)
	var all sync.WaitGroup
	for i, url := range q.URLs {
		if c.o.Probe == nil || wait == 0 {
			failed[i] = errors.New("nobody is asked")
			continue
		}
		all.Go(func() {
			found[i] = discovery.Candidate{URL: url, Source: discovery.ByURL}
			found[i].Assessment, failed[i] = c.o.Probe(ctx, caller.Agent, url, q.Task)
		})
	}
	return func() (answered []discovery.Candidate, warnings []string) {
		all.Wait()
		cancel()
		for i, url := range q.URLs {
			if failed[i] == nil {
				answered = append(answered, found[i])
				continue
			}
			warnings = append(warnings, fmt.Sprintf("%.200s: %v", url, failed[i]))
		}
		return answered, warnings
	}
}

// similar compares the task with the cards that are assessed here. Where that fails, keywords
// decide alone.
func (c *Calls) similar(ctx context.Context, task discovery.Task, cards []api.Card, answers map[performatives.Agent]discovery.Assessment) (alike map[performatives.Agent]discovery.Similarity, warnings []string) {
	if c.o.Similar == nil {
		return nil, nil
	}
	var agents []performatives.Agent
	var skills [][]discovery.Skill
	for _, card := range cards {
		if _, answered := answers[card.Agent]; !answered {
			agents, skills = append(agents, card.Agent), append(skills, card.Skills)
		}
	}
	found, err := c.o.Similar(ctx, task, skills)
	if err != nil {
		return nil, []string{"cards are compared by keywords alone: " + err.Error()}
	}
	alike = map[performatives.Agent]discovery.Similarity{}
	for i, a := range agents {
		alike[a] = found[i]
	}
	return alike, nil
}
