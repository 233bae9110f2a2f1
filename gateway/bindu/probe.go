package bindugateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/discovery"
)

// negotiation is the path at which an agent of Bindu's assesses itself.
const negotiation = "/agent/negotiation"

// maxProbed is how many bytes of an agent's answer are read.
const maxProbed = 64 << 10

// ErrProbe means that an agent elsewhere was reached, and its answer is no assessment.
var ErrProbe = errors.New("it answers no assessment")

// ProbeURL is the URL at which an agent is asked: the one that was given, if it has the path, else
// below it.
func ProbeURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return "", fmt.Errorf("%.100q is no URL of an agent, such as http://agent1:3773", text)
	}
	if path := strings.TrimSuffix(u.Path, "/"); !strings.HasSuffix(path, negotiation) {
		u.Path = path + negotiation
	}
	return u.String(), nil
}

// Probe asks an agent elsewhere how well it fits a task, as Bindu's orchestrators do.
func Probe(ctx context.Context, client *http.Client, at string, task discovery.Task) (a discovery.Assessment, err error) {
	if at, err = ProbeURL(at); err != nil {
		return a, err
	}
	body, err := json.Marshal(task, json.Deterministic(true))
	if err != nil {
		return a, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	r.Header.Set("Content-Type", "application/json")
	reply, err := client.Do(r)
	if err != nil {
		return a, err
	}
	defer reply.Body.Close() //nolint:errcheck // as much as counts was read
	data, err := io.ReadAll(io.LimitReader(reply.Body, maxProbed+1))
	switch {
	case err != nil:
		return a, err
	case reply.StatusCode != http.StatusOK:
		return a, fmt.Errorf("%w: the status is %d", ErrProbe, reply.StatusCode)
	case len(data) > maxProbed:
		return a, fmt.Errorf("%w: it has more than %d KiB", ErrProbe, maxProbed>>10)
	}
	var members struct {
		Accepted *bool    `json:"accepted"`
		Score    *float64 `json:"score"`
	}
	if json.Unmarshal(data, &members) != nil || members.Accepted == nil || members.Score == nil || json.Unmarshal(data, &a) != nil {
		return discovery.Assessment{}, ErrProbe
	}
	if why := a.Fault(); why != "" {
		return discovery.Assessment{}, fmt.Errorf("%w: %s", ErrProbe, why)
	}
	return a, nil
}
