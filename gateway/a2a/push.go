package a2agateway

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
)

// A pushRecord is a webhook that hears of a task.
type pushRecord struct {
	Config a2a.PushConfig `json:"config"`
	Next   uint64         `json:"next"`  // entry, which the webhook has not heard of
	State  a2a.TaskState  `json:"state"` // that it has heard of
}

// Bounds of webhooks.
const (
	maxPush     = 10 // of a caller for a task
	maxPushText = 2 << 10
	pushTries   = 6
	firstPause  = time.Second // between tries; it doubles
)

// checkPush refuses a webhook that is not called, or whose texts are too long.
func (g *Gateway) checkPush(_ context.Context, p *a2a.PushConfig) error {
	if err := g.o.CheckURL(p.URL); err != nil {
		return invalid("url: %v", err)
	}
	size := len(p.ID) + len(p.Token)
	if p.Auth != nil {
		size += len(p.Auth.Scheme) + len(p.Auth.Credentials)
	}
	if size > maxPushText || strings.ContainsFunc(p.Token+headerOf(p.Auth), func(r rune) bool { return r < ' ' || r > '~' }) {
		return invalid("id, token and authentication have at most %d printable ASCII characters", maxPushText)
	}
	return nil
}

func headerOf(a *a2a.PushAuthInfo) string {
	if a == nil || a.Scheme == "" || a.Credentials == "" {
		return ""
	}
	return a.Scheme + " " + a.Credentials
}

// addPush notes a webhook for a task, which is called from now on.
func (g *Gateway) addPush(ctx context.Context, c call, id performatives.SessionID, p a2a.PushConfig) (*a2a.PushConfig, error) {
	s, err := g.look(ctx, c, id)
	if err != nil {
		return nil, err
	}
	set, err := g.followers.webhooks(ctx, c, id)
	if err != nil {
		return nil, err
	}
	if p.ID == "" {
		p.ID = uuid.Must(uuid.NewV7()).String()
	}
	p.TaskID, p.Tenant = a2a.TaskID(id), ""
	r := newRecord(c, id)
	r.Push = &pushRecord{Config: p, State: s.state(c.pass.Agent)}
	if head := s.view.Head.Sequence; head != nil {
		r.Push.Next = *head + 1
	}
	key := pushKind + r.key(p.ID)
	if _, again := set[key]; !again && len(set) >= maxPush {
		return nil, invalid("a task has at most %d webhooks", maxPush)
	}
	g.followers.stop(key)
	if err := g.followers.store(ctx, key, &r); err != nil {
		return nil, err
	}
	if !s.view.State.Over() { // else there is nothing to tell, and the next sweep takes it away
		g.followers.follow(key, r)
	}
	return &p, nil
}

// CreateTaskPushConfig adds a webhook.
func (t tasks) CreateTaskPushConfig(ctx context.Context, p *a2a.PushConfig) (*a2a.PushConfig, error) {
	c := callOf(ctx)
	if c.pass.ReadOnly {
		return nil, t.refusal(errReadOnly)
	}
	if err := t.checkPush(ctx, p); err != nil {
		return nil, t.refusal(err)
	}
	made, err := t.addPush(ctx, c, performatives.SessionID(p.TaskID), *p)
	return made, t.refusal(err)
}

// GetTaskPushConfig answers with a webhook.
func (t tasks) GetTaskPushConfig(ctx context.Context, q *a2a.GetTaskPushConfigRequest) (*a2a.PushConfig, error) {
	key, err := t.pushKey(ctx, q.TaskID, q.ID)
	if err != nil {
		return nil, t.refusal(err)
	}
	data, revision, err := t.o.Records.Get(ctx, key)
	if err == nil && data == nil {
		err = noTask()
	}
	if err != nil {
		return nil, t.refusal(err)
	}
	r, err := readRecord(data, revision)
	if err != nil {
		return nil, t.refusal(err)
	}
	return r.Push.shown(), nil
}

// shown is a webhook as it is read: without its secrets, which another program that acts for
// the caller may have set.
func (p pushRecord) shown() *a2a.PushConfig {
	config := p.Config
	config.Token = ""
	if config.Auth != nil {
		config.Auth = &a2a.PushAuthInfo{Scheme: config.Auth.Scheme}
	}
	return &config
}

// pushKey is the key of a webhook of the caller's.
func (t tasks) pushKey(ctx context.Context, task a2a.TaskID, id string) (string, error) {
	c, of := callOf(ctx), performatives.SessionID(task)
	if _, err := t.look(ctx, c, of); err != nil {
		return "", err
	}
	return pushKind + newRecord(c, of).key(id), nil
}

// ListTaskPushConfigs answers with the caller's webhooks for a task.
func (t tasks) ListTaskPushConfigs(ctx context.Context, q *a2a.ListTaskPushConfigRequest) (*a2a.ListTaskPushConfigResponse, error) {
	c := callOf(ctx)
	if _, err := t.look(ctx, c, performatives.SessionID(q.TaskID)); err != nil {
		return nil, t.refusal(err)
	}
	set, err := t.followers.webhooks(ctx, c, performatives.SessionID(q.TaskID))
	if err != nil {
		return nil, t.refusal(err)
	}
	found := &a2a.ListTaskPushConfigResponse{Configs: []*a2a.PushConfig{}}
	for _, r := range set {
		found.Configs = append(found.Configs, r.Push.shown())
	}
	slices.SortFunc(found.Configs, func(a, b *a2a.PushConfig) int { return strings.Compare(a.ID, b.ID) })
	return found, nil
}

// DeleteTaskPushConfig takes a webhook away, if it is there.
func (t tasks) DeleteTaskPushConfig(ctx context.Context, q *a2a.DeleteTaskPushConfigRequest) error {
	if callOf(ctx).pass.ReadOnly {
		return t.refusal(errReadOnly)
	}
	key, err := t.pushKey(ctx, q.TaskID, q.ID)
	if err != nil {
		return t.refusal(err)
	}
	t.followers.stop(key)
	return t.refusal(t.o.Records.Delete(ctx, key))
}

// notify tells a webhook of what is new; done is once it heard that the task is over.
func (f *followers) notify(ctx context.Context, key string, c call, r *record) (done bool, err error) {
	s, err := f.look(ctx, c, r.Session)
	if refused(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	next, state := uint64(0), s.state(c.pass.Agent)
	if head := s.view.Head.Sequence; head != nil {
		next = *head + 1
	}
	if next == r.Push.Next && state == r.Push.State {
		return state.Terminal() && s.view.State.Over(), nil
	}
	none := 0
	task, err := f.write(ctx, c, s, &none, state.Terminal())
	if err != nil {
		return false, err
	}
	if err := f.post(ctx, *r, fmt.Sprintf("%s.%d", key, next), task); err != nil {
		if ctx.Err() != nil {
			return false, err
		}
		f.o.Log.Info("a webhook was not reached", zap.String("task", string(task.ID)), zap.Error(err))
	}
	r.Push.Next, r.Push.State = next, state
	ctx = context.WithoutCancel(ctx) // what it heard is noted, also while the gateway closes
	if done = s.view.State.Over(); done {
		return true, nil
	}
	data, err := json.Marshal(*r)
	if err != nil {
		return false, err
	}
	revision, changed, err := f.o.Records.Update(ctx, key, data, r.revision)
	if err == nil && !changed {
		r.revision = revision
	}
	return changed, err // by the caller, maybe at another broker
}

// post posts a task to a webhook, again and again if that fails.
func (f *followers) post(ctx context.Context, r record, id string, task *a2a.Task) error {
	body, err := json.Marshal(object{"task": task})
	if err != nil {
		return err
	}
	pause := firstPause
	for try := 1; ; try++ {
		if err = f.postOnce(ctx, r, id, body); err == nil || try == pushTries {
			return err
		}
		if err := background.Pause(ctx, pause); err != nil {
			return err
		}
		pause *= 2
	}
}

// postOnce posts once. The signature is that of Standard Webhooks, by the agent's key.
func (f *followers) postOnce(ctx context.Context, r record, id string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.Push.Config.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	stamp := strconv.FormatInt(f.o.Now().Unix(), 10)
	h := request.Header
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "parley")
	h.Set(a2a.SvcParamVersion, string(a2a.Version))
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", stamp)
	if signer, err := f.o.Custody.Signer(ctx, r.Agent); err != nil {
		return err
	} else if signer != nil {
		signature, err := signer.Sign([]byte(id + "." + stamp + "." + string(body)))
		if err != nil {
			return err
		}
		h.Set("Webhook-Signature", "v1a,"+base64.StdEncoding.EncodeToString(signature))
		h.Set("Webhook-Key-Id", string(signer.Key()))
	}
	if r.Push.Config.Token != "" {
		h.Set("X-A2A-Notification-Token", r.Push.Config.Token)
	}
	if auth := headerOf(r.Push.Config.Auth); auth != "" {
		h.Set("Authorization", auth)
	}
	answer, err := f.o.Push.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()                              //nolint:errcheck // only the status matters
	io.Copy(io.Discard, io.LimitReader(answer.Body, 4096)) //nolint:errcheck // for reuse of the connection
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("answered %s", answer.Status)
	}
	return nil
}
