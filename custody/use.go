package custody

import (
	"context"
	"strings"
	"time"

	"github.com/parley-asp/parley/store"
)

// used notes a use of a token, now and then in the bucket.
func (c *Custody) used(t *token, now time.Time) {
	c.mu.Lock()
	stale := now.Sub(c.uses[t.ID]) >= useEvery
	if stale {
		c.uses[t.ID] = now
	}
	c.mu.Unlock()
	if !stale {
		return
	}
	c.work.Go(func(ctx context.Context) {
		if _, err := c.bucket.Put(ctx, usePrefix+t.ID, []byte(now.UTC().Format(time.RFC3339))); err != nil {
			c.o.Log.Debug("the use of a token was not noted")
		}
	})
}

func (c *Custody) sawUse(e store.Entry) error {
	if e.Deleted {
		return nil
	}
	at, err := time.Parse(time.RFC3339, string(e.Value))
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if id := strings.TrimPrefix(e.Key, usePrefix); at.After(c.uses[id]) {
		c.uses[id] = at
	}
	return nil
}
