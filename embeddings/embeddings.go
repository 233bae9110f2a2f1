// Package embeddings tells how alike a task and an agent's skills are, by an endpoint that
// speaks OpenAI's embeddings.
//
//	e := embeddings.New("https://api.example.com/v1", "text-embedding-3-small", key)
//	similar := e.Similarity(ctx, task, skills) // nil: the endpoint failed; keywords decide alone
//
// What was embedded is kept. An endpoint that failed three times in a row is left alone for
// half a minute.
package embeddings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/discovery"
)

// Bounds.
const (
	within      = 5 * time.Second // of one request
	maxReply    = 16 << 20        // bytes
	maxKept     = 2_000           // vectors
	maxFailures = 3               // in a row, until the circuit breaker opens
	openFor     = 30 * time.Second
)

// A Client asks one endpoint.
type Client struct {
	url, model, key string
	http            *http.Client
	now             func() time.Time

	mu       sync.Mutex
	kept     map[string][]float32 // by text
	order    []string             // of kept, oldest first
	failures int
	until    time.Time // the circuit breaker is open
}

// New makes a client. Without a key it sends none.
func New(url, model, key string) *Client {
	return &Client{
		url: strings.TrimSuffix(url, "/"), model: model, key: key, http: &http.Client{Timeout: within}, now: time.Now,
		kept: map[string][]float32{},
	}
}

// Similarity compares a task with skills. It is nil if the endpoint fails, or failed a moment
// ago.
func (c *Client) Similarity(ctx context.Context, task discovery.Task, skills []discovery.Skill) discovery.Similarity {
	texts := make([]string, 0, len(skills)+1)
	for _, skill := range skills {
		texts = append(texts, skill.Text())
	}
	text := task.Summary
	if task.Details != "" {
		text += " " + task.Details
	}
	vectors, err := c.embed(ctx, append(texts, text))
	if err != nil {
		return nil
	}
	last := vectors[len(skills)]
	return func(skill int) float64 { return cosine(last, vectors[skill]) }
}

var errOpen = errors.New("embeddings: the endpoint failed a moment ago")

// embed returns the vectors of texts, and asks for those that it does not have.
func (c *Client) embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, missing, err := c.have(texts)
	if err != nil || len(missing) == 0 {
		return vectors, err
	}
	asked, err := c.ask(context.WithoutCancel(ctx), missing) // a caller that leaves is no failure of the endpoint
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		if c.failures++; c.failures >= maxFailures {
			c.failures, c.until = 0, c.now().Add(openFor)
		}
		return nil, err
	}
	c.failures = 0
	found := map[string][]float32{}
	for i, text := range missing {
		found[text] = asked[i]
		c.keep(text, asked[i])
	}
	for i, text := range texts {
		if vectors[i] == nil {
			vectors[i] = found[text]
		}
	}
	return vectors, nil
}

// have returns the vectors that are kept, and the texts without one.
func (c *Client) have(texts []string) (vectors [][]float32, missing []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	vectors = make([][]float32, len(texts))
	for i, text := range texts {
		if vectors[i] = c.kept[text]; vectors[i] == nil {
			missing = append(missing, text)
		}
	}
	if len(missing) > 0 && c.now().Before(c.until) {
		return nil, nil, errOpen
	}
	return vectors, missing, nil
}

func (c *Client) keep(text string, vector []float32) {
	if _, there := c.kept[text]; !there {
		c.order = append(c.order, text)
	}
	c.kept[text] = vector
	if len(c.order) > maxKept {
		delete(c.kept, c.order[0])
		c.order = c.order[1:]
	}
}

// ask sends texts to the endpoint.
func (c *Client) ask(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"model": c.model, "input": texts}, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/embeddings", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	reply, err := c.http.Do(r)
	if err != nil {
		return nil, errors.New("embeddings: the endpoint does not answer in time")
	}
	defer reply.Body.Close() //nolint:errcheck // all of it was read
	data, err := io.ReadAll(io.LimitReader(reply.Body, maxReply))
	if err != nil || reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("embeddings: the endpoint answers %d", reply.StatusCode)
	}
	var answer struct {
		Data []struct {
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if json.Unmarshal(data, &answer) != nil || len(answer.Data) != len(texts) {
		return nil, errors.New("embeddings: the endpoint answers no vectors")
	}
	vectors := make([][]float32, len(texts))
	for i, d := range answer.Data {
		if len(d.Embedding) == 0 || len(d.Embedding) != len(answer.Data[0].Embedding) {
			return nil, errors.New("embeddings: the vectors differ in length")
		}
		vectors[i] = d.Embedding
	}
	return vectors, nil
}

// cosine is the cosine of the angle between two vectors, 0 where it has none.
func cosine(a, b []float32) float64 {
	if len(a) != len(b) {
		return 0
	}
	var dot, ofA, ofB float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		ofA += float64(a[i]) * float64(a[i])
		ofB += float64(b[i]) * float64(b[i])
	}
	if ofA == 0 || ofB == 0 {
		return 0
	}
	return dot / (math.Sqrt(ofA) * math.Sqrt(ofB))
}
