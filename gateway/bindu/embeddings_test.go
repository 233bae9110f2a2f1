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
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

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
	return NewEmbeddings(s.URL+"/v1/", "m", "secret", zap.NewNop()), &asked
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
		all, err := c.Similarity(t.Context(), discovery.Task{Summary: "abc", Details: "defg"}, [][]discovery.Skill{nil, skills})
		if err != nil {
			t.Fatal(err)
		}
		similar := all[1]
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
	logged, seen := observer.New(zap.WarnLevel)
	c.log = zap.New(logged)
	at := time.Now()
	c.now = func() time.Time { return at }
	for n := range 5 {
		if _, err := c.Similarity(t.Context(), discovery.Task{Summary: "x"}, [][]discovery.Skill{make([]discovery.Skill, n)}); err == nil {
			t.Error("a similarity from nothing")
		}
	}
	if *asked != maxFailures {
		t.Errorf("the endpoint was asked %d times", *asked)
	}
	if seen.Len() != maxFailures {
		t.Errorf("%d warnings are logged", seen.Len())
	}
	broken, at = false, at.Add(openFor)
	if _, err := c.Similarity(t.Context(), discovery.Task{Summary: "x"}, nil); err != nil {
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
		_, _ = c.Similarity(gone, discovery.Task{Summary: fmt.Sprint(i)}, nil)
	}
	if _, err := c.Similarity(t.Context(), discovery.Task{Summary: "x"}, nil); err != nil {
		t.Error("the circuit breaker is open")
	}
}

func TestKeepsFew(t *testing.T) {
	t.Parallel()
	c := NewEmbeddings("", "", "", zap.NewNop())
	for i := range maxKept + 10 {
		c.keep(fmt.Sprint(i), []float32{1})
	}
	if len(c.kept) != maxKept || c.kept["0"] != nil || c.kept[fmt.Sprint(maxKept+9)] == nil {
		t.Error(len(c.kept))
	}
}

// The endpoint's URL is taken as it is, or without /embeddings, and several cards are one question;
// too many skills are none.
func TestManyCards(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "/", "/v1", "/v1/embeddings", "/v1/embeddings/"} {
		want := "/embeddings"
		if len(path) > 1 {
			want = "/v1" + want
		}
		if got := NewEmbeddings("https://api.example"+path, "m", "", zap.NewNop()).url; got != "https://api.example"+want {
			t.Errorf("%q is asked at %s", path, got)
		}
	}
	c, asked := endpoint(t, vectors)
	cards := make([][]discovery.Skill, 300)
	for i := range cards {
		cards[i] = []discovery.Skill{{ID: "x", Name: fmt.Sprint("skill ", i)}}
	}
	if all, err := c.Similarity(t.Context(), discovery.Task{Summary: "x"}, cards); err != nil || len(all) != len(cards) || all[299](0) <= 0 || *asked != 2 {
		t.Errorf("%d cards, asked %d times: %v", len(all), *asked, err)
	}
	if _, err := c.Similarity(t.Context(), discovery.Task{Summary: "x"}, [][]discovery.Skill{make([]discovery.Skill, maxCompared)}); err == nil || *asked != 2 {
		t.Errorf("too many skills are compared: %v", err)
	}
}
