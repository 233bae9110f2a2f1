package availability

import "context"

// Sweep is what happens every few seconds.
func (a *Agents) Sweep(ctx context.Context) { a.sweep(ctx) }

// Records is how often a record was written.
func (a *Agents) Records(ctx context.Context) (uint64, error) { return a.bucket.Revision(ctx) }
