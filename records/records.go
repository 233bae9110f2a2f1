// Package records keeps what gateways have to do later, such as notifications, by key.
//
//	r, err := records.Open(ctx, s, api.A2ABucket, "what is to be done for clients of A2A")
//	err = r.Put(ctx, "push.…", data)
//	all, err := r.All(ctx)
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

// All are the records that there are, by key.
func (r *Records) All(ctx context.Context) (map[string][]byte, error) {
	messages, err := r.bucket.Records(ctx)
	all := map[string][]byte{}
	for _, m := range messages {
		if len(m.Data) > 0 { // else it was deleted
			all[m.Subject] = m.Data
		}
	}
	return all, err
}

// Get is one record, nil if it is not there.
func (r *Records) Get(ctx context.Context, key string) ([]byte, error) {
	e, err := r.bucket.Get(ctx, key)
	if errors.Is(err, store.ErrNoKey) {
		return nil, nil
	}
	return e.Value, err
}

// Put writes a record.
func (r *Records) Put(ctx context.Context, key string, data []byte) error {
	if _, err := r.bucket.Put(ctx, key, data); err != nil {
		return err
	}
	return r.bucket.Sync()
}

// Delete takes a record away.
func (r *Records) Delete(ctx context.Context, key string) error { return r.bucket.Delete(ctx, key) }
