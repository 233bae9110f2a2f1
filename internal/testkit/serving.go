package testkit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// Serving waits until a URL is answered with 200: each request follows the answer to the one
// before, or its refusal.
func Serving(ctx context.Context, client *http.Client, url string) error {
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(answer.Status)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s is not serving: %w", url, err)
		}
	}
}
