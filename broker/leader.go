package broker

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

// On a stream with replicas any of its servers answers a direct get, and one
// that lags answers with what was. Where an answer depends on the newest, the
// leader is asked: it has applied whatever was acknowledged.

// errLagging means that not even the leader has what it said was there; it has
// changed in between.
var errLagging = errors.New("the stream's leader has changed; what it holds is not known yet")

// leaderTimeout is how long the leader may take: with none there is no answer.
const leaderTimeout = 2 * time.Second

// A question of STREAM.MSG.GET, which only the leader answers.
type question struct {
	Seq    uint64 `json:"seq,omitzero"`
	LastBy string `json:"last_by_subj,omitzero"`
	NextBy string `json:"next_by_subj,omitzero"`
}

// ask asks the leader for one message, nil where there is none.
func (l *log) ask(ctx context.Context, stream string, q question) (*jetstream.RawStreamMsg, error) {
	request, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	reply, err := l.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, request)
	if err != nil {
		return nil, fmt.Errorf("leader of %s: %w", stream, err)
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
		return nil, fmt.Errorf("leader of %s: %w", stream, answer.Error)
	case answer.Message == nil:
		return nil, fmt.Errorf("leader of %s: an answer without a message", stream)
	}
	m := &jetstream.RawStreamMsg{
		Subject: answer.Message.Subject, Sequence: answer.Message.Sequence, Data: answer.Message.Data, Time: answer.Message.Time,
	}
	if len(answer.Message.Header) > 0 {
		if m.Header, err = nats.DecodeHeadersMsg(answer.Message.Header); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// readRest reads up to a position that the leader named what a server that lags
// left out.
func (l *log) readRest(ctx context.Context, stream, subject string, from, end uint64, each func(stored) error) error {
	for from <= end {
		m, err := l.ask(ctx, stream, question{Seq: from, NextBy: subject})
		if err != nil {
			return err
		}
		if m == nil {
			return errLagging
		}
		if err := each(stored{m.Sequence, m.Subject, m.Data, m.Header.Get(packHeader)}); err != nil {
			return err
		}
		from = m.Sequence + 1
	}
	return nil
}

// records are the last message of each key of a bucket, as its leader has them.
// The bucket has few keys.
func (l *log) records(ctx context.Context, bucket string) ([]*jetstream.RawStreamMsg, error) {
	const subject = "$KV."
	stream := api.StreamOf(bucket)
	s, err := l.js.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(subject+bucket+".>"))
	if err != nil {
		return nil, err
	}
	var found []*jetstream.RawStreamMsg
	for key := range info.State.Subjects {
		m, err := l.ask(ctx, stream, question{LastBy: key})
		if err != nil {
			return nil, err
		}
		if m != nil && m.Header.Get("KV-Operation") == "" {
			m.Subject = key[len(subject+bucket+"."):]
			found = append(found, m)
		}
	}
	return found, nil
}
