package a2agateway

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/internal/outbound"
	"github.com/parley-asp/parley/store"
)

// A pushRecord is a webhook that is told of a task.
type pushRecord struct {
	Config a2a.PushConfig `json:"config"`
	Task   int            `json:"task,omitzero"` // which of the session's; 0 of the first
	Next   uint64         `json:"next"`          // entry, which the webhook has not received
	State  a2a.TaskState  `json:"state"`         // that it has received
}

// Bounds of webhooks.
const (
	maxPush     = 10 // of a caller for a task
	maxPushText = 2 << 10
	pushTries   = 6
	firstPause  = time.Second // between tries; it doubles
)

// pushBounds are those of the calls of webhooks that are under way. The others wait as records.
var pushBounds = outbound.Bounds{All: 128, Principal: 8, Host: 8, Server: 4, Failures: 5, Pause: 30 * time.Second}

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
func (g *Gateway) addPush(ctx context.Context, c call, of ref, p a2a.PushConfig) (*a2a.PushConfig, error) {
	s, err := g.look(ctx, c, of)
	if err != nil {
		return nil, err
	}
	set, err := g.followers.webhooks(ctx, c, of)
	if err != nil {
		return nil, err
	}
	if p.ID == "" {
		p.ID = uuid.Must(uuid.NewV7()).String()
	}
	p.TaskID, p.Tenant = of.id(), ""
	r := newRecord(c, of.session)
	r.Push = &pushRecord{Config: p, State: s.state(c.Agent), Next: s.end + 1}
	if of.number > 1 {
		r.Push.Task = of.number
	}
	key := pushKind + r.key(of.push(p.ID))
	if _, again := set[key]; !again && len(set) >= maxPush {
		return nil, invalid("a task has at most %d webhooks", maxPush)
	}
	g.followers.stop(key)
	if err := g.followers.store(ctx, key, &r); err != nil {
		return nil, err
	}
	if !r.Push.State.Terminal() { // else there is nothing to tell, and the next sweep takes it away
		g.followers.follow(key, r)
	}
	return &p, nil
}

// CreateTaskPushConfig adds a webhook.
func (t tasks) CreateTaskPushConfig(ctx context.Context, p *a2a.PushConfig) (*a2a.PushConfig, error) {
	c := callOf(ctx)
	if err := c.Acts(); err != nil {
		return nil, t.refusal(err)
	}
	if err := t.checkPush(ctx, p); err != nil {
		return nil, t.refusal(err)
	}
	of, err := refOf(p.TaskID)
	if err != nil {
		return nil, err
	}
	made, err := t.addPush(ctx, c, of, *p)
	return made, t.refusal(err)
}

// GetTaskPushConfig answers with a webhook.
func (t tasks) GetTaskPushConfig(ctx context.Context, q *a2a.GetTaskPushConfigRequest) (*a2a.PushConfig, error) {
	key, err := t.pushKey(ctx, q.TaskID, q.ID)
	if err != nil {
		return nil, t.refusal(err)
	}
	data, revision, err := t.record(ctx, key)
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
	c := callOf(ctx)
	of, err := refOf(task)
	if err != nil {
		return "", err
	}
	if _, err := t.look(ctx, c, of); err != nil {
		return "", err
	}
	return pushKind + newRecord(c, of.session).key(of.push(id)), nil
}

// push names a webhook among those of the session.
func (r ref) push(id string) string {
	if r.number <= 1 {
		return id
	}
	return strconv.Itoa(r.number) + "\n" + id
}

// ListTaskPushConfigs answers with the caller's webhooks for a task.
func (t tasks) ListTaskPushConfigs(ctx context.Context, q *a2a.ListTaskPushConfigRequest) (*a2a.ListTaskPushConfigResponse, error) {
	c := callOf(ctx)
	of, err := refOf(q.TaskID)
	if err != nil {
		return nil, err
	}
	if _, err := t.look(ctx, c, of); err != nil {
		return nil, t.refusal(err)
	}
	set, err := t.followers.webhooks(ctx, c, of)
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
	if err := callOf(ctx).Acts(); err != nil {
		return t.refusal(err)
	}
	key, err := t.pushKey(ctx, q.TaskID, q.ID)
	if err != nil {
		return t.refusal(err)
	}
	t.followers.stop(key)
	return t.refusal(t.o.Records.Delete(ctx, key))
}

// notify tells a webhook of what is new; done is once it knows that the task is over.
func (f *followers) notify(ctx context.Context, key string, c call, r *record) (done bool, err error) {
	if over, known, err := f.known(ctx, c, r); err != nil || known {
		return over, err
	}
	now, failed, err := f.call(ctx, key, c, r)
	if err != nil {
		return false, err
	}
	if failed != nil {
		if ctx.Err() != nil {
			return false, failed
		}
		if r.tries++; r.tries < pushTries {
			return false, &later{failed, firstPause << (r.tries - 1)}
		}
		f.o.Service.Log.Info("a webhook was not reached", zap.String("task", string(r.Session)), zap.Error(failed))
	}
	r.tries, r.Push.Next, r.Push.State = 0, now.next, now.state
	if now.over {
		return true, nil
	}
	ctx = context.WithoutCancel(ctx) // what it received is noted, also while the gateway closes
	data, err := json.Marshal(*r)
	if err != nil {
		return false, err
	}
	revision, err := f.o.Records.Update(ctx, key, data, r.revision)
	if errors.Is(err, store.ErrConflict) {
		return true, nil // it was changed by the caller, maybe at another broker
	}
	if err != nil {
		return false, err
	}
	r.revision = revision
	return false, f.o.Records.Sync()
}

// known reports whether a webhook knows all of a task, and then whether the task is over.
func (f *followers) known(ctx context.Context, c call, r *record) (over, known bool, err error) {
	s, err := f.look(ctx, c, r.ref())
	if err != nil || s.end+1 != r.Push.Next || s.state(c.Agent) != r.Push.State {
		return false, false, err
	}
	if s.held { // no entry says that it was refused
		return false, true, &later{errHeld, retryWait}
	}
	return r.Push.State.Terminal(), true, nil
}

var errHeld = errors.New("the first message is still to be said")

// ref is the task of a webhook.
func (r record) ref() ref { return ref{r.Session, max(1, r.Push.Task)} }

// told is what a webhook was told.
type told struct {
	next  uint64
	state a2a.TaskState
	over  bool
}

// call calls a webhook when it is the caller's turn; failed is why it was not told. What waits for
// its turn holds nothing but its record, and the webhook is told of the task as it is then.
func (f *followers) call(ctx context.Context, key string, c call, r *record) (now told, failed, err error) {
	to, err := url.Parse(r.Push.Config.URL)
	if err != nil {
		return now, nil, err
	}
	leave, err := f.pushes.Enter(ctx, string(r.Caller), to)
	if open, is := errors.AsType[*outbound.OpenError](err); is {
		err = &later{open, open.Retry}
	}
	if err != nil {
		return now, nil, err
	}
	outcome := context.Canceled // it says nothing of the server
	defer func() { leave(outcome) }()
	s, err := f.look(ctx, c, r.ref())
	if err != nil {
		return now, nil, err
	}
	now, none := told{next: s.end + 1, state: s.state(c.Agent)}, 0
	now.over = now.state.Terminal()
	task, err := f.write(ctx, c, s, &none, now.state.Terminal())
	if err != nil {
		return now, nil, err
	}
	failed = f.post(ctx, *r, fmt.Sprintf("%s.%d", key, now.next), task)
	if outcome = failed; errors.Is(failed, errAnswered) {
		outcome = nil
	}
	return now, failed, nil
}

// errAnswered is the failure of a webhook whose server works.
var errAnswered = errors.New("answered")

// post posts a task to a webhook. The signature is that of Standard Webhooks, by the agent's key.
func (f *followers) post(ctx context.Context, r record, id string, task *a2a.Task) error {
	body, err := json.Marshal(object{"task": task})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.Push.Config.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	stamp := strconv.FormatInt(f.o.Service.Now().Unix(), 10)
	h := request.Header
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "parley")
	h.Set(a2a.SvcParamVersion, string(a2a.Version))
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", stamp)
	if signer, err := f.o.Service.Custody.Signer(ctx, r.Agent); err != nil {
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
	switch answer.StatusCode / 100 {
	case 2:
		return nil
	case 5:
		return errors.New("answered " + answer.Status)
	}
	return fmt.Errorf("%w %s", errAnswered, answer.Status)
}
