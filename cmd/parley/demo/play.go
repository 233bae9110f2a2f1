package demo

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/session/transcript"
)

// sceneTime bounds a scene. It is longer than an inbox waits for an acknowledgement: what was
// on its way to a client that just closed comes again after that.
const sceneTime = 2 * time.Minute

// played is the outcome of a scene, to verify.
type played struct {
	id       performatives.SessionID
	received []transcript.Entry // by the agents
	entries  []transcript.Entry // exported from the broker
	view     api.SessionView

	agreement *agreement.Document // of a session in binding/1, with its position in the log
	err       error               // why the scene failed
}

// An actor is a connected agent.
type actor struct {
	*client.Client
	*role
	token string // over HTTP
}

// A player plays a scene.
type player struct {
	*record
	stage  *stage
	actors []*actor
	names  map[string]string // URIs, and ids of labelled messages
	face   face              // nil over NATS and HTTP
	remark func(string)
}

// A face is how agents speak where they do not submit acts themselves.
type face interface {
	// say does what a line says, and returns what came of it.
	say(ctx context.Context, a *actor, what string, body jsontext.Value, to *actor) (string, error)
	close()
}

func (s *stage) player(show func(transcript.Entry), remark func(string)) *player {
	id := performatives.SessionID(uuid.Must(uuid.NewV7()).String())
	return &player{record: newRecord(id, show), stage: s, names: map[string]string{}, remark: remark}
}

// play plays a scene, line by line, until its end. It calls show with each entry as it
// happens, and remark with the remarks between.
func (s *stage) play(ctx context.Context, sc *scene, show func(transcript.Entry), remark func(string)) played {
	ctx, cancel := context.WithTimeout(ctx, sceneTime)
	defer cancel()
	p := s.player(show, remark)
	defer p.leave()
	err := p.enter(ctx, sc.roles)
	var inboxes []inbox
	for _, a := range p.actors {
		inboxes = append(inboxes, func(ctx context.Context) error { return a.read(ctx, p.record) })
	}
	if err == nil {
		err = reading(ctx, inboxes, func(ctx context.Context) error {
			for _, l := range sc.lines {
				if err := p.perform(ctx, l); err != nil {
					return fmt.Errorf("%s %s: %w", l.who, l.what, err)
				}
			}
			return nil
		})
	}
	return p.result(ctx, err)
}

// enter connects principals.
func (p *player) enter(ctx context.Context, roles []role) (err error) {
	for i := range roles {
		a, err := p.stage.enter(ctx, &roles[i])
		if err != nil {
			return fmt.Errorf("%s: %w", roles[i].agent, err)
		}
		p.actors = append(p.actors, a)
		p.names[a.who] = string(a.Agent())
	}
	p.face, err = p.overFace()
	return err
}

// leave closes their connections.
func (p *player) leave() {
	if p.face != nil {
		p.face.close()
	}
	for _, a := range p.actors {
		p.stage.leave(a.Client)
	}
}

// An inbox is what reads one, until its context ends.
type inbox func(context.Context) error

// reading does something while inboxes are read.
func reading(ctx context.Context, inboxes []inbox, do func(context.Context) error) error {
	ctx, end := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	for _, read := range inboxes {
		all.Go(func() {
			if err := read(ctx); ctx.Err() == nil {
				end(err)
			}
		})
	}
	err := do(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = cause
	}
	end(nil)
	all.Wait()
	return err
}

// read reads an inbox, in which an earlier demo on the same broker may have left something.
func (a *actor) read(ctx context.Context, records ...*record) error {
	for m, err := range a.Messages(ctx) {
		if err != nil {
			return err
		}
		for _, r := range records {
			r.add(a.Agent(), m.Entry)
		}
		if err := m.Ack(); err != nil {
			return err
		}
	}
	return client.ErrClosed
}

// result is what a scene came to, which the first of the actors reads from the broker.
func (p *player) result(ctx context.Context, err error) played {
	r := played{id: p.session, received: p.entries, err: err}
	if err != nil {
		return r
	}
	s := p.actors[0].Session(r.id)
	if r.entries, r.err = s.Transcript(ctx); r.err != nil {
		return r
	}
	if r.view, r.err = s.View(ctx); r.err == nil && r.view.Mode == modes.Binding.Name {
		var d agreement.Document
		d, r.err = logged(ctx, p.actors[0].Client, agreement.IDOf(r.id, accepted(r.view)))
		r.agreement = &d
	}
	return r
}

// perform does what a line says, and compares the answer.
func (p *player) perform(ctx context.Context, l line) (err error) {
	a := p.actor(l.who)
	var answer string
	switch {
	case l.what == "#":
		p.says(l.object)
		return nil
	case l.what == "negotiate":
		return p.negotiate(ctx)
	case l.what == "enters":
		return p.enters(ctx, l.object)
	case l.what == "sees":
		return p.sees(ctx, a, p.expand(l.object))
	case performatives.Parse(l.what) != performatives.Unknown:
		answer, err = p.act(ctx, a, l)
	case p.face != nil:
		answer, err = p.face.say(ctx, a, l.what, jsontext.Value(p.expand(string(l.body))), p.actor(l.to))
	default:
		return errors.New("there is no such performative")
	}
	if err != nil {
		return err
	}
	if l.label != "" {
		p.names[l.label] = string(p.newest().Message.ID)
	}
	if !strings.HasPrefix(answer, l.answer) {
		return fmt.Errorf("the answer is %s; expected %s", answer, l.answer)
	}
	return nil
}

// act sends an act, once its agent has received what was said last.
func (p *player) act(ctx context.Context, a *actor, l line) (answer string, err error) {
	if err := p.until(ctx, func() bool {
		n := uint64(len(p.entries))
		return n == 0 || p.received[a.Agent()] >= n || p.last().Message.Sender == a.Agent()
	}); err != nil {
		return "", err
	}
	body := performatives.NewBody(performatives.Parse(l.what))
	if err := json.Unmarshal([]byte(p.expand(string(l.body))), body); err != nil {
		return "", err
	}
	var options []client.ActOption
	if to := p.actor(l.to); to != nil {
		options = append(options, client.To(to.Agent()))
	}
	s := a.Session(p.session)
	if l.binds != "" {
		signed, err := p.bind(ctx, s, body, p.actor(l.binds))
		if err != nil {
			return "", err
		}
		options = append(options, signed...)
	}
	receipt, err := s.Say(ctx, body, options...)
	if refusal, refused := errors.AsType[*session.Refusal](err); refused {
		answer = "refused " + string(refusal.Code)
		p.says(a.name + " sends " + l.what + " → " + answer + ": " + refusal.Message)
		return answer, nil
	}
	if err != nil {
		return "", err
	}
	return "accepted " + receipt.State.String(), p.until(ctx, func() bool { return uint64(len(p.entries)) > receipt.Sequence })
}

// bind signs an offer, or its acceptance, as an agreement that both keep for half a year. Its
// place is the end of the transcript.
func (p *player) bind(ctx context.Context, s *client.Session, body performatives.Body, with *actor) ([]client.ActOption, error) {
	head, err := s.Head(ctx)
	options := []client.ActOption{client.LinkTo(head)}
	if b, offers := body.(performatives.Binder); offers {
		begin := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
		terms := client.Agreement{With: with.Agent(), From: begin, Until: begin.AddDate(0, 6, 0), Category: b.Binds().Category}
		return append(options, client.Bind(terms)), err
	}
	return append(options, client.Sign(&client.Message{Entry: p.newest()})), err
}

// overFace is how the agents speak that are not clients of the broker.
func (p *player) overFace() (face, error) {
	switch p.stage.face {
	case MCP:
		return &tools{p, map[*actor]*mcp.ClientSession{}}, nil
	case A2A:
		return &tasks{p, map[*actor]*a2aclient.Client{}}, nil
	case MACP:
		return newMessages(p)
	default:
		return nil, nil //nolint:nilnil // they are its clients
	}
}

// did prints what came of an agent's call in the session, and what it called.
func (p *player) did(ctx context.Context, a *actor, what string) error {
	entries, err := a.Session(p.session).Transcript(ctx)
	p.add("", entries...)
	p.says(a.name + " " + what)
	return err
}

// says prints a remark.
func (p *player) says(text string) { p.between(func() { p.remark(text) }) }

// poll is how often the demo asks for what the broker writes after the transcript.
const poll = 20 * time.Millisecond

// sees waits until an escalation is in a human's inbox: the ESCALATE may arrive before it.
func (p *player) sees(ctx context.Context, a *actor, id string) error {
	for {
		for item, err := range a.Escalations(ctx, api.ListEscalations{}) {
			if err != nil {
				return err
			}
			if string(item.ID) == id {
				due, err := time.Parse(time.RFC3339Nano, item.Deadline)
				p.says(fmt.Sprintf("in the escalation inbox of %s: %s, urgency %s, due %s UTC",
					item.Organisation, item.Reason, item.Urgency, due.UTC().Format(time.DateTime)))
				return err
			}
		}
		if err := background.Pause(ctx, poll); err != nil {
			return err
		}
	}
}

// enters waits for what the broker enters once a time has passed.
func (p *player) enters(ctx context.Context, event string) error {
	return p.until(ctx, func() bool {
		inform, is := p.last().Message.Body.(*performatives.InformBody)
		if !is || !p.last().Message.Sender.IsBroker() {
			return false
		}
		entered, _ := inform.Event()
		return entered.Event == event
	})
}

// logged is an agreement, once the public log has it.
func logged(ctx context.Context, c *client.Client, id agreement.ID) (agreement.Document, error) {
	for {
		d, err := c.Agreement(ctx, api.GetAgreement{Agreement: id})
		if err != nil || d.Log != nil {
			return d, err
		}
		if err := background.Pause(ctx, poll); err != nil {
			return d, err
		}
	}
}

// actor is who a script names, nil for nobody.
func (p *player) actor(who string) *actor {
	for _, a := range p.actors {
		if a.who == who {
			return a
		}
	}
	return nil
}

var mention = regexp.MustCompile(`@[a-z]+`)

// expand puts URIs and ids for names.
func (p *player) expand(text string) string {
	return mention.ReplaceAllStringFunc(text, func(at string) string {
		switch at {
		case "@soon":
			return time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339Nano)
		case "@newest":
			return string(p.newest().Stamp.Hash)
		}
		return p.names[at[1:]]
	})
}
