package server

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
)

// ask calls a verb as an operator.
func ask[Q, A any](ctx context.Context, s *Server, verb api.VerbOf[Q, A], request Q) (answer A, err error) {
	data, err := json.Marshal(request)
	if err != nil {
		return answer, err
	}
	reply, err := s.Broker.Options.Conn.RequestWithContext(ctx, api.OperatorCall(verb.Name), data)
	if err != nil {
		return answer, fmt.Errorf("%s: %w", verb.Name, err)
	}
	if code := reply.Header.Get(api.ErrorCodeHeader); code != "" {
		return answer, fmt.Errorf("%s failed with %s", verb.Name, code)
	}
	return answer, json.Unmarshal(reply.Data, &answer)
}
