package bindugateway

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/discovery"
)

// endpoint answers each text by whether it speaks of PDFs and of images.
func endpoint(t *testing.T, answer func(w http.ResponseWriter, texts []string)) (*Embeddings, *int) {
	t.Helper()
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Model string   `json:"model"`
			Input []string `json:"input"`
		}
		if err := json.UnmarshalRead(r.Body, &q); err != nil || q.Model != "m" || r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s %+v %v", r.URL, q, err)
		}
		asked++
		answer(w, q.Input)
	}))
	t.Cleanup(s.Close)
	return NewEmbeddings(s.URL+"/v1/", "m", "secret"), &asked
}

func vectors(w http.ResponseWriter, texts []string) {
	data := []map[string][]float64{}
	for _, text := range texts {
		data = append(data, map[string][]float64{"embedding": {float64(len(text)), 3}})
	}
	reply, _ := json.Marshal(map[string]any{"data": data})
	_, _ = w.Write(reply)
}

func TestSimilarity(t *testing.T) {
	t.Parallel()
	c, asked := endpoint(t, vectors)
	skills := []discovery.Skill{{ID: "a", Name: "abc"}, {ID: "b"}}
	for range 2 {
		similar := c.Similarity(t.Context(), discovery.Task{Summary: "abc", Details: "defg"}, skills)
		if similar == nil {
			t.Fatal("no similarity")
		}
		// The texts have 8, 4 (with a space at the end) and 0 letters.
		for i, want := range []float64{(8*4 + 9) / (math.Sqrt(73) * 5), 9 / (math.Sqrt(73) * 3)} {
			if got := similar(i); math.Abs(got-want) > 1e-6 {
				t.Errorf("skill %d: %v, want %v", i, got, want)
			}
		}
	}
	if *asked != 1 {
		t.Errorf("the endpoint was asked %d times for the same texts", *asked)
	}
}

// An endpoint that fails costs keywords alone, and after three times nothing for a while.
func TestFailures(t *testing.T) {
	t.Parallel()
	broken := true
	c, asked := endpoint(t, func(w http.ResponseWriter, texts []string) {
		switch {
		case !broken:
			vectors(w, texts)
		case len(texts) == 1:
			http.Error(w, "no", http.StatusTooManyRequests)
		case len(texts) == 2:
			_, _ = fmt.Fprint(w, `{"data":[{"embedding":[1]},{"embedding":[1,2]}]}`)
		default:
			_, _ = fmt.Fprint(w, `{"data":[]}`)
		}
	})
	at := time.Now()
	c.now = func() time.Time { return at }
	for n := range 5 {
		if c.Similarity(t.Context(), discovery.Task{Summary: "x"}, make([]discovery.Skill, n)) != nil {
			t.Error("a similarity from nothing")
		}
	}
	if *asked != maxFailures {
		t.Errorf("the endpoint was asked %d times", *asked)
	}
	broken, at = false, at.Add(openFor)
	if c.Similarity(t.Context(), discovery.Task{Summary: "x"}, nil) == nil {
		t.Error("the circuit breaker stays open")
	}
}

// Callers that leave do not open the circuit breaker.
func TestCallersLeave(t *testing.T) {
	t.Parallel()
	c, _ := endpoint(t, vectors)
	gone, leave := context.WithCancel(t.Context())
	leave()
	for i := range maxFailures {
		c.Similarity(gone, discovery.Task{Summary: fmt.Sprint(i)}, nil)
	}
	if c.Similarity(t.Context(), discovery.Task{Summary: "x"}, nil) == nil {
		t.Error("the circuit breaker is open")
	}
}

func TestKeepsFew(t *testing.T) {
	t.Parallel()
	c := NewEmbeddings("", "", "")
	for i := range maxKept + 10 {
		c.keep(fmt.Sprint(i), []float32{1})
	}
	if len(c.kept) != maxKept || c.kept["0"] != nil || c.kept[fmt.Sprint(maxKept+9)] == nil {
		t.Error(len(c.kept))
	}
}
