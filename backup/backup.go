// Package backup writes what a broker keeps into one file while the broker runs, and
// makes a store of that file again.
//
//	nc, stop, err := node.Store(node.Options{Data: "parley-data", NATS: url})
//	manifest, err := backup.Write(ctx, nc, keys, file)
//	…
//	manifest, err := backup.Restore(ctx, nc, file, backup.Options{})
//
// The file is a tar of JetStream's own snapshots: messages at their positions, times,
// consumers and how far each has read. Streams are not snapshotted at one moment. Their
// order makes up for that (see Order): first how far the brokers have settled their work,
// then what is derived, last the transcripts. So whatever is derived in the backup has its
// entry there too, and what is missing comes after what the brokers had settled, where
// the next start looks: it is derived again, as after a crash.
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
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
)

// Format is the version of the file's format.
const Format = 1

// A Manifest says what is in a backup. It is the first file of the tar.
type Manifest struct {
	Format  int       `json:"format"`
	At      time.Time `json:"at"`
	Server  string    `json:"natsServer"`   // version
	Dev     bool      `json:"dev,omitzero"` // of a broker without logins, whose embedded server has other accounts
	Streams []string  `json:"streams"`      // in the order in which they were taken
	Keys    []string  `json:"keys"`         // names of key files; empty where they were left out
}

// A File is a small one that goes along, such as a key's.
type File struct {
	Name string
	Data []byte
}

// Sum is what a stream comes to, for checking.
type sum struct {
	Chunks int    `json:"chunks"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Names within the tar.
const (
	manifestName = "manifest.json"
	keysFolder   = "keys/"
	streamFolder = "streams/"
	configName   = "config.json"
	sumName      = "sum.json"
	endName      = "end.json"
)

const (
	chunkSize = 512 << 10 // bytes, below the largest message of a server
	mode      = 0o600     // of every file in the tar; it may hold keys
)

// Order sorts streams as they have to be taken: the brokers' records first, the
// transcripts last, and after them where they go when a session is over.
func Order(streams []string) {
	place := func(name string) int {
		switch name {
		case api.StreamOf(api.BrokersBucket):
			return 0
		case api.SessionsStream:
			return 2
		case api.CatalogueStream: // where lines go, from a stream that was taken before
			return 3
		case api.ArchiveStream:
			return 4
		default:
			return 1
		}
	}
	slices.SortFunc(streams, func(a, b string) int {
		if d := place(a) - place(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
}

// ours tells whether a stream of the broker's account is the broker's.
func ours(name string) bool { return strings.HasPrefix(strings.TrimPrefix(name, "KV_"), "ASP_") }

// Write takes a backup over a connection to the broker's account.
func Write(ctx context.Context, nc *nats.Conn, keys []File, to io.Writer) (Manifest, error) {
	m := Manifest{Format: Format, At: time.Now().UTC(), Server: nc.ConnectedServerVersion(), Dev: dev(ctx, nc), Keys: []string{}}
	var err error
	if m.Streams, err = streams(ctx, nc); err != nil {
		return m, err
	}
	if !slices.Contains(m.Streams, api.SessionsStream) {
		return m, fmt.Errorf("backup: there is no stream %s: is this a broker's server?", api.SessionsStream)
	}
	for _, key := range keys {
		m.Keys = append(m.Keys, key.Name)
	}
	w := &writer{tar.NewWriter(to), m.At}
	if err := w.json(manifestName, m); err != nil {
		return m, err
	}
	for _, key := range keys {
		if err := w.file(keysFolder+key.Name, key.Data); err != nil {
			return m, err
		}
	}
	for _, name := range m.Streams {
		if err := w.stream(ctx, nc, name); err != nil {
			return m, fmt.Errorf("backup: %s: %w", name, err)
		}
	}
	if err := w.json(endName, map[string]int{"streams": len(m.Streams)}); err != nil {
		return m, err
	}
	return m, w.tar.Close()
}

// dev tells whether the broker runs under --dev; one that does not run does not.
func dev(ctx context.Context, nc *nats.Conn) bool {
	var broker api.Broker
	return ask(ctx, nc, api.OperatorCall(api.BrokerInfo.Name), struct{}{}, &broker) == nil && broker.Dev
}

func streams(ctx context.Context, nc *nats.Conn) ([]string, error) {
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
	tar *tar.Writer
	at  time.Time
}

func (w *writer) file(name string, data []byte) error {
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
	return w.file(name, append(data, '\n'))
}

// stream writes the snapshot of one stream as the server sends it.
func (w *writer) stream(ctx context.Context, nc *nats.Conn, name string) error {
	deliver := nc.NewRespInbox()
	sub, err := nc.SubscribeSync(deliver)
	if err != nil {
		return err
	}
	defer sub.Unsubscribe() //nolint:errcheck // all of it was received, or nothing will be made of it
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return err
	}
	var answer struct {
		Error  *jetstream.APIError `json:"error,omitempty"`
		Config json.RawMessage     `json:"config"`
		State  json.RawMessage     `json:"state"`
	}
	if err := ask(ctx, nc, "$JS.API.STREAM.SNAPSHOT."+name, map[string]any{"deliver_subject": deliver, "chunk_size": chunkSize}, &answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return answer.Error
	}
	if err := w.json(streamFolder+name+"/"+configName, answer); err != nil {
		return err
	}
	s := newSummer()
	for {
		m, err := next(ctx, sub)
		if err != nil {
			return err
		}
		if len(m.Data) == 0 {
			if status := m.Header.Get("Status"); status != "" && status != "204" {
				return fmt.Errorf("the server ended the snapshot: %s %s", status, m.Header.Get("Description"))
			}
			return w.json(streamFolder+name+"/"+sumName, s.sum())
		}
		s.add(m.Data)
		if err := w.file(fmt.Sprintf("%s%s/%08d", streamFolder, name, s.chunks), m.Data); err != nil {
			return err
		}
		if m.Reply != "" { // the server sends no more than so many that nobody has taken
			if err := nc.Publish(m.Reply, nil); err != nil {
				return err
			}
		}
	}
}

// silence is how long a server may take for the next chunk.
const silence = 30 * time.Second

func next(ctx context.Context, sub *nats.Subscription) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	return sub.NextMsgWithContext(ctx)
}

func ask(ctx context.Context, nc *nats.Conn, subject string, request, answer any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, subject, data)
	if err != nil {
		return err
	}
	return json.Unmarshal(m.Data, answer)
}

// A summer adds up the chunks of a stream.
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

// ErrDamaged is for a file that is not a whole backup.
var ErrDamaged = errors.New("not a whole backup")
