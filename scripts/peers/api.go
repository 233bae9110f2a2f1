package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
)

const tables = `
CREATE TABLE agents (agent text PRIMARY KEY, token text NOT NULL UNIQUE, key text NOT NULL);
CREATE TABLE sessions (session uuid PRIMARY KEY, state text NOT NULL, acts int NOT NULL, updated timestamptz NOT NULL);
CREATE TABLE acts (session uuid, sequence int, entry text NOT NULL, PRIMARY KEY (session, sequence));`

// connections to PostgreSQL: more share an fsync, and each is a process.
const connections = 16

// An httpAPI is the HTTP API before PostgreSQL. Agents show a token and sign what they say; the API signs the receipt
// of each entry, which names the hash of the one before, as parley does.
//
//	POST /agents  {"agentId", "key"} → {"token"}
//	POST /acts    an envelope → {"sequenceNumber", "hash", "receipt"}
//	GET  /acts    the entries for the caller from now on, one a line
type httpAPI struct {
	db    *pgxpool.Pool
	judge *judge

	mu          sync.Mutex
	callers     map[string]performatives.Agent // by token
	subscribers map[performatives.Agent]chan position
}

// A position is an act's: its session and its sequence number there.
type position struct {
	session  string
	sequence int
}

// serve runs the API until the context ends, and prints its URL.
func serve(ctx context.Context, out io.Writer) error {
	config, err := pgxpool.ParseConfig(os.Getenv(databaseURL))
	if err != nil {
		return err
	}
	config.MaxConns = connections
	db, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.Exec(ctx, tables); err != nil {
		return err
	}
	listener, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return err
	}
	defer listener.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the process ends
	if _, err := listener.Exec(ctx, "LISTEN acts"); err != nil {
		return err
	}
	a := &httpAPI{db: db, callers: map[string]performatives.Agent{}, subscribers: map[performatives.Agent]chan position{}}
	if a.judge, err = newJudge(a); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /agents", answer(a.register))
	mux.HandleFunc("POST /acts", answer(a.submit))
	mux.HandleFunc("GET /acts", a.stream)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "http://%s\n", l.Addr())
	g, serving := errgroup.WithContext(ctx)
	g.Go(func() error { return server.Serve(l) })
	g.Go(func() error { return a.notify(serving, listener) })
	g.Go(func() error { <-serving.Done(); return server.Close() })
	if err := g.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

// answer writes what a request comes to, or a refusal with its code.
func answer(do func(*http.Request, []byte) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var value any
		data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, performatives.MaxEnvelope))
		if err == nil {
			value, err = do(r, data)
		}
		var refusal *session.Refusal
		switch {
		case errors.As(err, &refusal):
			w.WriteHeader(http.StatusUnprocessableEntity)
			value = map[string]any{"code": refusal.Code, "message": refusal.Message, "details": refusal.Details}
		case err != nil:
			fmt.Fprintln(os.Stderr, "api:", err)
			w.WriteHeader(http.StatusInternalServerError)
		}
		json.NewEncoder(w).Encode(value) //nolint:errcheck // the client is gone
	}
}

func (a *httpAPI) register(r *http.Request, data []byte) (any, error) {
	var body struct {
		AgentID string
		Key     performatives.Key
	}
	if err := json.Unmarshal(data, &body); err != nil {
		return nil, session.Refuse(session.MalformedEnvelope, "%s", err)
	}
	agent, err := performatives.ParseAgent(body.AgentID)
	if err != nil {
		return nil, session.Refuse(session.MalformedEnvelope, "%s", err)
	}
	if err := a.judge.register(agent, body.Key); err != nil {
		return nil, err
	}
	token := rand.Text()
	if _, err := a.db.Exec(r.Context(), "INSERT INTO agents VALUES ($1, $2, $3)", string(agent), token, string(body.Key)); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.callers[token] = agent
	return map[string]string{"token": token}, nil
}

func (a *httpAPI) submit(r *http.Request, data []byte) (any, error) {
	who, _ := a.caller(r)
	return a.judge.submit(r.Context(), who, data)
}

// caller is whose token the request shows.
func (a *httpAPI) caller(r *http.Request) (performatives.Agent, bool) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	a.mu.Lock()
	defer a.mu.Unlock()
	agent, ok := a.callers[token]
	return agent, ok
}

// notify passes PostgreSQL's notifications to the subscribers. One who falls behind is dropped.
func (a *httpAPI) notify(ctx context.Context, listener *pgx.Conn) error {
	for {
		n, err := listener.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		var at position
		var to performatives.Agent
		if _, err := fmt.Sscan(n.Payload, &to, &at.session, &at.sequence); err != nil {
			return err
		}
		a.mu.Lock()
		if subscriber, ok := a.subscribers[to]; ok {
			select {
			case subscriber <- at:
			default:
				close(subscriber)
				delete(a.subscribers, to)
			}
		}
		a.mu.Unlock()
	}
}

// stream writes the caller's acts as PostgreSQL tells of them.
func (a *httpAPI) stream(w http.ResponseWriter, r *http.Request) {
	who, ok := a.caller(r)
	if !ok {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	subscriber := make(chan position, 1024)
	a.mu.Lock()
	a.subscribers[who] = subscriber
	a.mu.Unlock()
	for {
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case at, ok := <-subscriber:
			if !ok {
				return
			}
			if err := a.write(r.Context(), w, at, subscriber); err != nil {
				fmt.Fprintln(os.Stderr, "api: stream:", err)
				return
			}
		}
	}
}

// write writes an act and those that wait behind it, which it reads together.
func (a *httpAPI) write(ctx context.Context, w io.Writer, at position, more <-chan position) error {
	var batch pgx.Batch
	for {
		batch.Queue("SELECT entry FROM acts WHERE session = $1 AND sequence = $2", at.session, at.sequence).QueryRow(func(row pgx.Row) error {
			var entry string
			if err := row.Scan(&entry); err != nil {
				return err
			}
			_, err := io.WriteString(w, entry+"\n")
			return err
		})
		if len(more) == 0 {
			return a.db.SendBatch(ctx, &batch).Close()
		}
		at = <-more
	}
}

// appendAct appends an act, updates its session and tells its readers, in one transaction.
const appendAct = `
WITH act AS (INSERT INTO acts VALUES ($1, $2, $5)),
     row AS (INSERT INTO sessions VALUES ($1, $4, $2 + 1, $3)
             ON CONFLICT (session) DO UPDATE SET state = excluded.state, acts = excluded.acts, updated = excluded.updated)
SELECT pg_notify('acts', reader || ' ' || $1::uuid || ' ' || $2::int) FROM unnest($6::text[]) AS reader`

func (a *httpAPI) add(ctx context.Context, id performatives.SessionID, entry []byte, stamp performatives.Stamp, at time.Time, readers []performatives.Agent) error {
	_, err := a.db.Exec(ctx, appendAct, string(id), stamp.Sequence, at, stamp.Receipt.State, string(entry), readers)
	var conflict *pgconn.PgError
	if errors.As(err, &conflict) && conflict.Code == "23505" { // unique_violation: another API was first
		return errTaken
	}
	return err
}

// load folds a transcript.
func (a *httpAPI) load(ctx context.Context, id performatives.SessionID) (*session.State, error) {
	state := session.New(id, modes.All())
	rows, err := a.db.Query(ctx, "SELECT entry FROM acts WHERE session = $1 ORDER BY sequence", string(id))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var entry string
		if err := rows.Scan(&entry); err != nil {
			return nil, err
		}
		if state, err = replay(state, []byte(entry)); err != nil {
			return nil, err
		}
	}
	return &state, rows.Err()
}
