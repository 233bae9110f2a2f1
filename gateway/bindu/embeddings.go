package bindugateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/internal/outbound"
)

// Bounds.
const (
	within      = 5 * time.Second // of one request
	atOnce      = 16              // requests
	maxReply    = 16 << 20        // bytes
	maxKept     = 2_000           // vectors
	maxBatch    = 256             // texts of one request
	maxCompared = 1_000           // texts of one comparison
	maxFailures = 3               // in a row, until the circuit breaker opens
	openFor     = 30 * time.Second
)

// Embeddings tell how alike a task and an agent's skills are, by an endpoint that speaks OpenAI's
// embeddings. What was embedded is kept. An endpoint that failed three times in a row is left
// alone for half a minute.
type Embeddings struct {
	url, model, key string
	log             *zap.Logger
	http            *http.Client
	now             func() time.Time

	mu       sync.Mutex
	kept     map[string][]float32 // by text
	order    []string             // of kept, oldest first
	failures int
	until    time.Time // the circuit breaker is open
}

// NewEmbeddings asks an endpoint, whose URL may end with /embeddings or not. Without a key it sends
// none. It logs when the endpoint fails.
func NewEmbeddings(url, model, key string, log *zap.Logger) *Embeddings {
	return &Embeddings{
		url: strings.TrimSuffix(strings.TrimSuffix(url, "/"), "/embeddings") + "/embeddings", model: model, key: key, now: time.Now, log: log,
		http: &http.Client{Timeout: within, Transport: outbound.New(outbound.Bounds{All: atOnce, Principal: atOnce, Host: atOnce, Server: atOnce}).Transport(http.DefaultTransport)},
		kept: map[string][]float32{},
	}
}

// Similarity compares a task with the skills of one card or of several, for each. It fails if the
// endpoint does, or did a moment ago.
func (e *Embeddings) Similarity(ctx context.Context, task discovery.Task, cards [][]discovery.Skill) ([]discovery.Similarity, error) {
	text := task.Summary
	if task.Details != "" {
		text += " " + task.Details
	}
	texts := []string{text}
	for _, skills := range cards {
		for _, skill := range skills {
			texts = append(texts, skill.Text())
		}
	}
	if len(texts) > maxCompared {
		return nil, fmt.Errorf("embeddings: the cards have %d skills, and at most %d are compared: ask fewer agents", len(texts)-1, maxCompared-1)
	}
	vectors, err := e.embed(ctx, texts)
	if err != nil {
		return nil, err
	}
	all, next := make([]discovery.Similarity, len(cards)), 1
	for i, skills := range cards {
		of := vectors[next : next+len(skills)]
		all[i] = func(skill int) float64 { return cosine(vectors[0], of[skill]) }
		next += len(skills)
	}
	return all, nil
}

var errOpen = errors.New("embeddings: the endpoint failed a moment ago")

// embed returns the vectors of texts, and asks for those that it does not have.
func (e *Embeddings) embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, missing, err := e.have(texts)
	if err != nil || len(missing) == 0 {
		return vectors, err
	}
	asked, err := e.askAll(context.WithoutCancel(ctx), missing) // a caller that leaves is no failure of the endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.log.Warn("embeddings fail: keywords decide alone", zap.Error(err))
		if e.failures++; e.failures >= maxFailures {
			e.failures, e.until = 0, e.now().Add(openFor)
		}
		return nil, err
	}
	e.failures = 0
	found := map[string][]float32{}
	for i, text := range missing {
		found[text] = asked[i]
		e.keep(text, asked[i])
	}
	for i, text := range texts {
		if vectors[i] == nil {
			vectors[i] = found[text]
		}
	}
	return vectors, nil
}

// have returns the vectors that are kept, and the texts without one.
func (e *Embeddings) have(texts []string) (vectors [][]float32, missing []string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	vectors = make([][]float32, len(texts))
	for i, text := range texts {
		if vectors[i] = e.kept[text]; vectors[i] == nil {
			missing = append(missing, text)
		}
	}
	if len(missing) > 0 && e.now().Before(e.until) {
		return nil, nil, errOpen
	}
	return vectors, missing, nil
}

func (e *Embeddings) keep(text string, vector []float32) {
	if _, there := e.kept[text]; !there {
		e.order = append(e.order, text)
	}
	e.kept[text] = vector
	if len(e.order) > maxKept {
		delete(e.kept, e.order[0])
		e.order = e.order[1:]
	}
}

// askAll sends texts to the endpoint, so many at a time, and takes no longer than one request may.
func (e *Embeddings) askAll(ctx context.Context, texts []string) (vectors [][]float32, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for some := range slices.Chunk(texts, maxBatch) {
		asked, err := e.ask(ctx, some)
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, asked...)
	}
	return vectors, nil
}

// ask sends texts to the endpoint.
func (e *Embeddings) ask(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"model": e.model, "input": texts}, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if e.key != "" {
		r.Header.Set("Authorization", "Bearer "+e.key)
	}
	reply, err := e.http.Do(r)
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
