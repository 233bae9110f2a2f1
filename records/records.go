// Package records keeps what gateways have to do later, such as notifications, by key.
//
//	r, err := records.Open(ctx, s, api.A2ABucket, "what is to be done for clients of A2A")
//	revision, err := r.Put(ctx, "push.…", data)
//	revision, changed, err := r.Update(ctx, "push.…", data, revision)
//	err = r.All(ctx, "push.…*", func(key string, data []byte, revision uint64) { … })
//
// What is put is as durable as an act that was accepted. There are few records at a time.
package records

import (
	"context"
	"errors"

	"github.com/parley-asp/parley/store"
)

// Records are one bucket of them.
type Records struct{ bucket *store.Bucket }

// Open opens a bucket.
func Open(ctx context.Context, s *store.Store, name, description string) (*Records, error) {
	bucket, err := s.Bucket(ctx, name, description, 0)
	return &Records{bucket}, err
}

// All calls saw with each record whose key matches a pattern of subjects, such as "push.*" or
// ">".
func (r *Records) All(ctx context.Context, pattern string, saw func(key string, data []byte, revision uint64)) error {
	messages, err := r.bucket.Records(ctx, pattern)
	for _, m := range messages {
		saw(m.Subject, m.Data, m.Sequence)
	}
	return err
}

// Get is one record; without it, data is nil and the revision 0.
func (r *Records) Get(ctx context.Context, key string) (data []byte, revision uint64, err error) {
	e, err := r.bucket.Get(ctx, key)
	if errors.Is(err, store.ErrNoKey) {
		return nil, 0, nil
	}
	return e.Value, e.Revision, err
}

// Put writes a record, whatever there is.
func (r *Records) Put(ctx context.Context, key string, data []byte) (revision uint64, err error) {
	if revision, err = r.bucket.Put(ctx, key, data); err != nil {
		return 0, err
	}
	return revision, r.bucket.Sync()
}

// Update writes a record that is still at a revision; changed tells that it is not.
func (r *Records) Update(ctx context.Context, key string, data []byte, at uint64) (revision uint64, changed bool, err error) {
	revision, err = r.bucket.Update(ctx, key, data, at)
	if errors.Is(err, store.ErrConflict) {
		return 0, true, nil
	}
	if err != nil {
		return 0, false, err
	}
	return revision, false, r.bucket.Sync()
}

// Delete takes a record away, whatever there is.
func (r *Records) Delete(ctx context.Context, key string) error { return r.bucket.Delete(ctx, key) }

// DeleteIf takes a record away that is still at a revision. One that has changed stays.
func (r *Records) DeleteIf(ctx context.Context, key string, at uint64) error {
	if err := r.bucket.DeleteIf(ctx, key, at); !errors.Is(err, store.ErrConflict) {
		return err
	}
	return nil
}
