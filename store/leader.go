package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
)

// On a replicated stream any server answers a direct get, and one that lags
// answers with what was. Where an answer depends on the newest message, the leader
// is asked: it has applied whatever was acknowledged.

// errLagging means that the leader has changed while a stream was read.
var errLagging = errors.New("the stream's leader has changed; what it holds is not known yet")

// leaderTimeout is how long the leader may take to answer.
const leaderTimeout = 2 * time.Second

// A question of STREAM.MSG.GET, which only the leader answers.
type question struct {
	Sequence uint64 `json:"seq,omitzero"`
	LastBy   string `json:"last_by_subj,omitzero"`
	NextBy   string `json:"next_by_subj,omitzero"`
}

// askLeader asks the leader for one message, nil where there is none.
func (s *Store) askLeader(ctx context.Context, p shard, q question) (*Message, error) {
	request, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	reply, err := s.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+p.name, request)
	if err != nil {
		return nil, fmt.Errorf("leader of %s: %w", p.name, err)
	}
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message *struct {
			Subject  string    `json:"subject"`
			Sequence uint64    `json:"seq"`
			Header   []byte    `json:"hdrs"`
			Data     []byte    `json:"data"`
			Time     time.Time `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return nil, err
	}
	switch {
	case answer.Error != nil && answer.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return nil, nil //nolint:nilnil // no message is an answer
	case answer.Error != nil:
		return nil, fmt.Errorf("leader of %s: %w", p.name, answer.Error)
	case answer.Message == nil:
		return nil, fmt.Errorf("leader of %s: an answer without a message", p.name)
	}
	found := answer.Message
	m := &Message{Subject: found.Subject, Sequence: p.position(found.Sequence), Data: found.Data, Time: found.Time}
	if len(found.Header) > 0 {
		if m.Header, err = nats.DecodeHeadersMsg(found.Header); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// readRest reads, up to a sequence that the leader named, what a server that lags left out.
func (s *Store) readRest(ctx context.Context, p shard, subject string, from, end uint64, each func(Message) error) error {
	for from <= end {
		m, err := s.askLeader(ctx, p, question{Sequence: max(1, p.from(from)), NextBy: subject})
		if err != nil {
			return err
		}
		if m == nil {
			return errLagging
		}
		if err := each(*m); err != nil {
			return err
		}
		from = m.Sequence + 1
	}
	return nil
}

func (s *Store) records(ctx context.Context, bucket, pattern string) ([]Message, error) {
	stream, prefix := api.StreamOf(bucket), "$KV."+bucket+"."
	known, err := s.js.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	info, err := known.Info(ctx, jetstream.WithSubjectFilter(prefix+pattern))
	if err != nil {
		return nil, err
	}
	var found []Message
	for subject := range info.State.Subjects {
		m, err := s.askLeader(ctx, shard{stream, 0, 1}, question{LastBy: subject})
		if err != nil {
			return nil, err
		}
		if m != nil && m.Header.Get("KV-Operation") == "" {
			m.Subject = subject[len(prefix):]
			found = append(found, *m)
		}
	}
	return found, nil
}
