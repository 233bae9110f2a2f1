package testkit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// Serving waits until a URL is answered with 200.
func Serving(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	var why error
	if Until(ctx, func() bool {
		answer, err := client.Do(request)
		if err != nil {
			why = err
			return false
		}
		answer.Body.Close()
		why = errors.New(answer.Status)
		return answer.StatusCode == http.StatusOK
	}) != nil {
		return fmt.Errorf("%s is not serving: %w", url, why)
	}
	return nil
}
