package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// The targets of [HTTP].
const (
	overNATS   = "nats"   // signed envelopes over NATS
	overHTTP   = "http"   // signed envelopes over HTTP
	overEvents = "events" // as http, and the counterparty reads by SSE instead of its NATS consumer
	hosted     = "hosted" // as events, of agents without a key; the broker makes the envelopes and signs them
)

// A FaceLevel compares the faces of a broker, each on a broker of its own, in turns.
type FaceLevel struct {
	Sync     string  `json:"sync"`
	Sessions int     `json:"sessions"`
	Machine  Machine `json:"machine"`
	Faces    []Face  `json:"faces"`      // nats, http, events, hosted
	Seen     Spread  `json:"seenMicros"` // from accepted to the event, of the face events
	Signed   float64 `json:"signedMore"` // CPU/act of hosted beyond that of events, in signature checks
}

// A Face is one face, and its figures divided by those of NATS.
type Face struct {
	Name  string  `json:"name"`
	Is    Figures `json:"figures"`
	Ratio Ratio   `json:"ratio"`
}

// HTTP compares acts over HTTP with the same over NATS.
func HTTP(ctx context.Context, o Options) (Report, error) {
	if o.URL != "" || o.Brokers > 0 {
		return Report{}, errors.New("bench: HTTP is measured on brokers with an embedded server")
	}
	names := []string{overNATS, overHTTP, overEvents, hosted}
	return o.report(ctx, names, func(ctx context.Context, w *world, r *Report) error {
		for _, sessions := range o.Sessions {
			level := FaceLevel{Sync: w.sync, Sessions: sessions}
			var err error
			if level.Machine, err = measureMachine(w.dir); err != nil {
				return err
			}
			o.say("sync %s, %d at a time: %.0f s each", w.sync, sessions, o.Seconds)
			var all []*measurement
			for _, t := range w.targets {
				all = append(all, &measurement{target: t, workers: t.workers(sessions, o.Acts, o.Body)})
			}
			if err := o.alternate(ctx, all...); err != nil {
				return err
			}
			for i, m := range all {
				f := Face{Name: names[i], Is: m.figures()}
				f.Ratio = f.Is.over(all[0].figures())
				level.Faces = append(level.Faces, f)
			}
			level.Seen = all[2].seen()
			level.Signed = over(level.Faces[3].Is.CPU-level.Faces[2].Is.CPU, level.Machine.Verify)
			r.Faces = append(r.Faces, level)
		}
		return nil
	})
}

// seen is from accepted to received; what was received first took no time.
func (s *measurement) seen() Spread {
	if len(s.roundTrips) == 0 {
		return Spread{}
	}
	var all []time.Duration
	for _, t := range s.roundTrips {
		all = append(all, max(0, t.received-t.accepted))
	}
	return spread(all)
}

// httpFlag has a broker serve HTTP.
const httpFlag = "--http=127.0.0.1:0"

// openHTTP starts a broker that is spoken to over HTTP.
func (w *world) openHTTP(ctx context.Context, name string) (*target, error) {
	r, operator, nats, err := w.startBroker(ctx, name, httpFlag, "--limit-http", "-1")
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 1 << 14}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // of the streams
	r.close = func() {
		cancel()
		transport.CloseIdleConnections()
	}
	contentType := "application/asp+json"
	if name == hosted {
		contentType, r.encode = "application/json", unsigned
	}
	r.submit = func(ctx context.Context, from, _ *party, id performatives.SessionID, message []byte) error {
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.http+api.SubmitEndpoint.At(string(id)), bytes.NewReader(message))
		if err != nil {
			return err
		}
		q.Header.Set("Authorization", "Bearer "+from.token)
		q.Header.Set("Content-Type", contentType)
		a, err := transport.RoundTrip(q)
		if err != nil {
			return err
		}
		defer a.Body.Close() //nolint:errcheck // it has been read
		answer, err := io.ReadAll(a.Body)
		if err == nil && a.StatusCode != http.StatusOK {
			err = fmt.Errorf("refused: %s", answer)
		}
		return err
	}
	r.join = func(joining context.Context, p *person) (*party, error) {
		add, card := operator.AddAgent, api.Card{Agent: p.Agent, Key: p.signer.Key(), LoginKeys: []performatives.Key{p.logs.Key()}}
		if name == hosted {
			add, card.Key = operator.AddHosted, ""
		}
		if _, err := add(joining, card); err != nil {
			return nil, err
		}
		made, err := operator.AddToken(joining, api.AddToken{Agent: p.Agent})
		if err != nil {
			return nil, err
		}
		if name != overHTTP {
			there := &party{person: p, token: made.Token, workers: map[string]*worker{}}
			return there, there.follow(ctx, r.http, transport)
		}
		there, err := r.enter(p, nats)
		if err != nil {
			return nil, err
		}
		there.token = made.Token
		return there, there.listen(joining, api.InboxStreamOf(p.Agent, w.options.shards()))
	}
	return r, nil
}

// unsigned is what a hosted agent sends.
func unsigned(_ *party, _ performatives.SessionID, body performatives.Body) ([]byte, error) {
	return json.Marshal(struct {
		Performative string             `json:"performative"`
		Body         performatives.Body `json:"body"`
	}{body.Act().String(), body})
}

// follow reads the party's inbox as events.
func (p *party) follow(ctx context.Context, url string, transport *http.Transport) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url+api.InboxEventsEndpoint.Path(), nil)
	if err != nil {
		return err
	}
	q.Header.Set("Authorization", "Bearer "+p.token)
	a, err := transport.RoundTrip(q) //nolint:bodyclose // who reads it closes it
	if err != nil {
		return err
	}
	if a.StatusCode != http.StatusOK {
		return errors.Join(errors.New("the events are refused: "+a.Status), a.Body.Close())
	}
	lines := bufio.NewScanner(a.Body)
	lines.Buffer(nil, 1<<20)
	lines.Scan() // the first comment: what happens from now on comes
	go func() {
		defer a.Body.Close() //nolint:errcheck // nobody reads it any more
		for lines.Scan() {
			now := time.Now()
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				_, id, _ := strings.Cut(data, `"sessionId":"`)
				id, _, _ = strings.Cut(id, `"`)
				p.hear(id, now)
			}
		}
	}()
	return nil
}
