package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/discovery"
	bindugateway "github.com/parley-asp/parley/gateway/bindu"
	"github.com/parley-asp/parley/internal/publicnet"
)

// probing is how long agents elsewhere may take, if the user says so.
func probing(cmd *cobra.Command, within time.Duration) time.Duration {
	if !cmd.Flags().Changed("within") {
		return 0
	}
	return max(within, time.Millisecond)
}

// probeAll asks agents elsewhere, all at once. The function that it returns waits for them.
func probeAll(ctx context.Context, urls []string, task discovery.Task, within time.Duration) func() ([]discovery.Candidate, []string) {
	found, failed := make([]discovery.Candidate, len(urls)), make([]error, len(urls))
	client := publicnet.Client(within, true) // the user chose them
	var all sync.WaitGroup
	for i, url := range urls {
		all.Go(func() {
			found[i] = discovery.Candidate{URL: url, Source: discovery.ByURL}
			found[i].Assessment, failed[i] = bindugateway.Probe(ctx, client, url, task)
		})
	}
	return func() (answered []discovery.Candidate, warnings []string) {
		all.Wait()
		for i, url := range urls {
			switch {
			case failed[i] == nil:
				answered = append(answered, found[i])
			case errors.Is(failed[i], bindugateway.ErrProbe):
				warnings = append(warnings, fmt.Sprintf("%s: %v", url, failed[i]))
			default:
				warnings = append(warnings, url+": it does not answer in time, or cannot be reached")
			}
		}
		return answered, warnings
	}
}

// merge ranks agents elsewhere beside those that the broker found.
func merge(found *api.Proposals, elsewhere []discovery.Candidate, warnings []string, rank discovery.Policy, limit int) {
	found.Warnings = append(found.Warnings, warnings...)
	if len(elsewhere) == 0 {
		return
	}
	found.Candidates = append(found.Candidates, elsewhere...)
	rank.Rank(found.Candidates)
	if limit > 0 && len(found.Candidates) > limit {
		found.Candidates, found.Truncated = found.Candidates[:limit], true
	}
	rank.Explain(found.Candidates)
}
