package server

import (
	"context"

	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/embeddings"
	"github.com/parley-asp/parley/performatives"
)

// Embeddings is an endpoint that speaks OpenAI's embeddings; without a URL there is none.
type Embeddings struct{ URL, Model, Key string }

// assessor assesses an agent by its card: by keywords, and by embeddings if there are any.
func (s *Server) assessor(o Options) func(context.Context, performatives.Agent, *discovery.Prepared) (discovery.Assessment, bool) {
	if o.Embeddings.URL == "" {
		return func(_ context.Context, a performatives.Agent, t *discovery.Prepared) (discovery.Assessment, bool) {
			return s.Proposals().Assess(a, t, nil)
		}
	}
	client := embeddings.New(o.Embeddings.URL, o.Embeddings.Model, o.Embeddings.Key)
	return func(ctx context.Context, a performatives.Agent, t *discovery.Prepared) (discovery.Assessment, bool) {
		return s.Proposals().Assess(a, t, func(skills []discovery.Skill) discovery.Similarity {
			return client.Similarity(ctx, t.Task, skills)
		})
	}
}
