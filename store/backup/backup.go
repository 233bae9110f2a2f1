// Package backup writes a broker's store to one file while the broker runs, and restores
// a store from such a file.
//
//	nc, stop, err := server.Store(server.Options{Data: "parley-data", NATS: url})
//	manifest, err := backup.Write(ctx, nc, keys, file)
//	…
//	manifest, err := backup.Restore(ctx, nc, file, backup.Options{})
//
// The file is a tar of JetStream's own snapshots: messages with their stream sequences and
// times, consumers and their cursors. Session consumers, which come and go with their readers, are not
// restored. Where that ends the server's snapshots of an inbox stream, its consumers are listed instead, each with up to
// where it has acknowledged all: what it has acknowledged beyond comes again. The streams are not snapshotted at the same moment,
// but in an order that makes up for it (see Order): first the brokers' records of how far
// side effects are applied, then derived data, last the transcripts. So all derived data in
// a backup has its entry in the backup too. Derived data may be missing, but only after the
// recorded position, from which the next start reconciles as after a crash.
package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/store"
)

// Format is the version of the file format.
const Format = 1

// A Manifest lists the contents of a backup. It is the first file of the tar.
type Manifest struct {
	Format  int       `json:"format"`
	At      time.Time `json:"at"`
	Server  string    `json:"natsServer"`   // version
	Dev     bool      `json:"dev,omitzero"` // made under --dev, where the embedded server has other accounts
	Streams []string  `json:"streams"`      // in the order of their snapshots
	Keys    []string  `json:"keys"`         // names of key files; empty if they were left out

	// Applied is up to where in the transcripts all side effects were applied when the backup
	// began: all of them, if no broker was there.
	Applied store.Marks `json:"applied,omitzero"`
}

// A File is a small file in the backup, such as a key.
type File struct {
	Name string
	Data []byte
}

// A sum is the checksum of a stream's chunks.
type sum struct {
	Chunks int    `json:"chunks"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Names within the tar.
const (
	manifestName  = "manifest.json"
	keysFolder    = "keys/"
	streamFolder  = "streams/"
	configName    = "config.json"
	consumersName = "consumers-" // and a number
	sumName       = "sum.json"
	endName       = "end.json"
)

const (
	chunkSize = 512 << 10 // bytes, below the server's max_payload
	mode      = 0o600     // of every file in the tar, since it may contain keys
)

// Order sorts streams in the order of their snapshots: the brokers' records first, then cards, before the inboxes that were
// opened for them, the transcripts last, and after them the archive, to which ended sessions move.
func Order(streams []string) {
	rank := func(name string) int {
		switch api.Unsharded(name) {
		case api.StreamOf(api.BrokersBucket):
			return 0
		case api.StreamOf(api.AgentsBucket):
			return 1
		case api.SessionsStream:
			return 3
		case api.ArchiveIndexStream: // session rows move there from a stream of rank 2
			return 4
		case api.ArchiveStream:
			return 5
		default:
			return 2
		}
	}
	slices.SortFunc(streams, func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
}

// ours reports whether a stream of the broker's account is one of parley's.
func ours(name string) bool { return strings.HasPrefix(strings.TrimPrefix(name, "KV_"), "ASP_") }

// Write takes a backup over a connection to the broker's account, into an empty file.
func Write(ctx context.Context, nc *nats.Conn, keys []File, to *os.File) (Manifest, error) {
	return write(ctx, nc, keys, to, exactSnapshots)
}

func write(ctx context.Context, nc *nats.Conn, keys []File, to *os.File, exact int) (Manifest, error) {
	m := Manifest{Format: Format, At: time.Now().UTC(), Server: nc.ConnectedServerVersion(), Dev: dev(ctx, nc), Keys: []string{}}
	var err error
	if m.Streams, err = streams(ctx, nc, ours); err != nil {
		return m, fmt.Errorf("backup: %w", explain(ctx, nc, api.SessionsStream, err))
	}
	if slices.Contains(m.Streams, api.RestoringStream) {
		return m, fmt.Errorf("backup: %w", store.ErrRestoring)
	}
	if !slices.Contains(m.Streams, api.SessionsStream) {
		return m, fmt.Errorf("backup: there is no stream %s: is this a broker's server?", api.SessionsStream)
	}
	for _, key := range keys {
		m.Keys = append(m.Keys, key.Name)
	}
	if m.Applied, err = allApplied(ctx, nc, m.Streams); err != nil {
		return m, err
	}
	w := &writer{to, tar.NewWriter(to), m.At, map[string]string{}, exact}
	if err := w.json(manifestName, m); err != nil {
		return m, err
	}
	for _, key := range keys {
		if err := w.add(keysFolder+key.Name, key.Data); err != nil {
			return m, err
		}
	}
	for _, name := range m.Streams {
		if err := w.snapshot(ctx, nc, name); err != nil {
			return m, fmt.Errorf("backup: %w", explain(ctx, nc, name, err))
		}
	}
	if err := w.json(endName, end{len(m.Streams), w.parts}); err != nil {
		return m, err
	}
	return m, w.tar.Close()
}

// dev reports whether a broker is running under --dev.
func dev(ctx context.Context, nc *nats.Conn) bool {
	var broker api.Broker
	return ask(ctx, nc, api.OperatorCall(api.BrokerInfo.Name), struct{}{}, &broker) == nil && broker.Dev
}

// streams are the streams of a server that are parley's.
func streams(ctx context.Context, nc *nats.Conn, ours func(name string) bool) ([]string, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	var names []string
	list := js.StreamNames(ctx)
	for name := range list.Name() {
		if ours(name) {
			names = append(names, name)
		}
	}
	Order(names)
	return names, list.Err()
}

type writer struct {
	file  *os.File
	tar   *tar.Writer
	at    time.Time
	parts map[string]string // digests of parts other than chunks
	exact int               // snapshots of an inbox stream that the server is asked for with its consumers
}

const (
	snapshots      = 10 // of a stream, until the server completes one
	exactSnapshots = 3
	snapshotPause  = 500 * time.Millisecond
)

// errEnded means that the server has ended a snapshot: a consumer went away meanwhile, or its leader did.
var errEnded = errors.New("the server ended the snapshot")

// snapshot writes a stream, again from where it began if the server ends its snapshot. It ends each one of an inbox
// stream where readers come and go all the time: then consumers are listed, and the snapshot is of messages only.
func (w *writer) snapshot(ctx context.Context, nc *nats.Conn, name string) error {
	if err := w.tar.Flush(); err != nil {
		return err
	}
	begun, err := w.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		err := w.stream(ctx, nc, name, n > w.exact && api.Unsharded(name) == api.InboxStream)
		if err == nil || !errors.Is(err, errEnded) || n == snapshots {
			return err
		}
		if err := background.Pause(ctx, snapshotPause); err != nil {
			return err
		}
		if _, err := w.file.Seek(begun, io.SeekStart); err != nil {
			return err
		}
		if err := w.file.Truncate(begun); err != nil {
			return err
		}
		w.tar = tar.NewWriter(w.file)
		maps.DeleteFunc(w.parts, func(part, _ string) bool { return strings.HasPrefix(part, streamFolder+name+"/") })
	}
}

// add adds a part other than a chunk.
func (w *writer) add(name string, data []byte) error {
	w.parts[name] = digest(data)
	return w.put(name, data)
}

func (w *writer) put(name string, data []byte) error {
	if err := w.tar.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data)), ModTime: w.at, Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err := w.tar.Write(data)
	return err
}

func (w *writer) json(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return w.add(name, append(data, '\n'))
}

// end is the last part of a backup.
type end struct {
	Streams int               `json:"streams"`
	Parts   map[string]string `json:"parts"` // SHA-256 of all other parts but chunks; earlier versions wrote none
}

func digest(part []byte) string {
	sum := sha256.Sum256(part)
	return hex.EncodeToString(sum[:])
}

// stream writes the chunks of one stream's snapshot as the server sends them. Its consumers are in there, or listed before.
func (w *writer) stream(ctx context.Context, nc *nats.Conn, name string, list bool) error {
	if list { // before the snapshot: what is acknowledged meanwhile comes again
		if err := w.consumers(ctx, nc, name); err != nil {
			return err
		}
	}
	deliver := nc.NewRespInbox()
	sub, err := nc.SubscribeSync(deliver)
	if err != nil {
		return err
	}
	defer sub.Unsubscribe() //nolint:errcheck // an incomplete snapshot is an error already
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return err
	}
	var answer struct {
		Error  *jetstream.APIError `json:"error,omitempty"`
		Config json.RawMessage     `json:"config"`
		State  json.RawMessage     `json:"state"`
	}
	if err := ask(ctx, nc, "$JS.API.STREAM.SNAPSHOT."+name, map[string]any{"deliver_subject": deliver, "chunk_size": chunkSize, "no_consumers": list}, &answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return fmt.Errorf("%w: %w", errEnded, answer.Error)
	}
	if err := w.json(streamFolder+name+"/"+configName, answer); err != nil {
		return err
	}
	s := newSummer()
	for {
		m, err := next(ctx, sub)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return fmt.Errorf("%w: nothing came for %s", errEnded, chunkTimeout)
		}
		if err != nil {
			return err
		}
		if len(m.Data) == 0 {
			if status := m.Header.Get("Status"); status != "" && status != "204" {
				return fmt.Errorf("%w: %s %s", errEnded, status, m.Header.Get("Description"))
			}
			return w.json(streamFolder+name+"/"+sumName, s.sum())
		}
		s.add(m.Data)
		if err := w.put(fmt.Sprintf("%s%s/%08d", streamFolder, name, s.chunks), m.Data); err != nil {
			return err
		}
		if m.Reply != "" { // flow control: the server waits for acknowledgements
			if err := nc.Publish(m.Reply, nil); err != nil {
				return err
			}
		}
	}
}

// chunkTimeout is how long the server may take for a reply or the next chunk.
const chunkTimeout = 30 * time.Second

func next(ctx context.Context, sub *nats.Subscription) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	return sub.NextMsgWithContext(ctx)
}

func ask(ctx context.Context, nc *nats.Conn, subject string, request, answer any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, subject, data)
	if err != nil {
		return err
	}
	return json.Unmarshal(m.Data, answer)
}

// A summer computes the sum of a stream.
type summer struct {
	hash   hash.Hash
	chunks int
	bytes  int64
}

func newSummer() *summer { return &summer{hash: sha256.New()} }

func (s *summer) add(chunk []byte) {
	s.hash.Write(chunk)
	s.chunks++
	s.bytes += int64(len(chunk))
}

func (s *summer) sum() sum { return sum{s.chunks, s.bytes, hex.EncodeToString(s.hash.Sum(nil))} }
