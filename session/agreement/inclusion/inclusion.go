// Package inclusion is the public log as one can check it without the broker: its leaves,
// its checkpoints, and proofs that a leaf is in it.
//
//	key, err := inclusion.ParseKey("parley/UAFC…+0f8e…+AdGx…") // as 'parley log key' prints it
//	if err == nil { err = proof.Verify(key) }
//
// The log is one of C2SP: tlog-tiles, tlog-checkpoint and signed-note. Hashing and proofs
// are those of golang.org/x/mod/sumdb.
package inclusion

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/parley-asp/parley/performatives"
)

// A Kind is what a leaf is of.
type Kind string

// The kinds.
const (
	Agreement Kind = "agreement" // Hash is its agreement_hash
	Session   Kind = "session"   // Hash is that of the last entry of a session that has ended
)

// A Leaf is one entry of the log.
type Leaf struct {
	Type  Kind                      `json:"type"`
	Hash  string                    `json:"hash"`
	At    string                    `json:"at"`             // when the entry that made it was accepted
	Terms map[string]jsontext.Value `json:"terms,omitzero"` // those that the parties publish
}

// MaxLeaf is the most bytes of a leaf: an entry bundle has its length in 16 bits.
const MaxLeaf = 1<<16 - 1

// Bytes are the leaf in canonical form (RFC 8785), as the log has it.
func (l Leaf) Bytes() (jsontext.Value, error) {
	data, err := json.Marshal(l, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	return performatives.Canonical(data)
}

// A Checkpoint is a size of the log and the root hash at that size.
type Checkpoint struct {
	Origin string
	Tree   tlog.Tree
}

// Text is the checkpoint as it is signed.
func (c Checkpoint) Text() string {
	return c.Origin + "\n" + strconv.FormatInt(c.Tree.N, 10) + "\n" + c.Tree.Hash.String() + "\n"
}

// ParseKey reads a verifier key.
func ParseKey(text string) (note.Verifier, error) {
	v, err := note.NewVerifier(strings.TrimSpace(text))
	if err != nil {
		return nil, fmt.Errorf("the log's key is NAME+HASH+KEY, as 'parley log key' prints it: %w", err)
	}
	return v, nil
}

var errCheckpoint = errors.New("the checkpoint is not three lines of origin, size and root hash")

// Open verifies a checkpoint's signature by the log's key, and reads it.
func Open(signed string, key note.Verifier) (c Checkpoint, err error) {
	n, err := note.Open([]byte(signed), note.VerifierList(key))
	if err != nil {
		return c, err
	}
	for _, signature := range n.Sigs {
		if _, err := base64.StdEncoding.Strict().DecodeString(signature.Base64); err != nil {
			return c, fmt.Errorf("the checkpoint's signature is not canonical: %w", err)
		}
	}
	if c, err = parse(n.Text); err != nil {
		return c, err
	}
	if c.Origin != key.Name() {
		return c, fmt.Errorf("the checkpoint is of the log %q, not of %q", c.Origin, key.Name())
	}
	return c, nil
}

// parse reads the text of a checkpoint.
func parse(text string) (c Checkpoint, err error) {
	lines := strings.SplitN(text, "\n", 4) // further lines are extensions
	if len(lines) != 4 {
		return c, errCheckpoint
	}
	c.Origin = lines[0]
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return c, errCheckpoint
	}
	c.Tree.N = size
	if c.Tree.Hash, err = tlog.ParseHash(lines[2]); err != nil {
		return c, errCheckpoint
	}
	return c, nil
}

// A Proof shows that a leaf is in the log.
type Proof struct {
	Index      int64          `json:"index"` // of the leaf, from 0
	Leaf       jsontext.Value `json:"leaf"`
	Checkpoint string         `json:"checkpoint"` // a signed note
	Path       []string       `json:"proof"`      // of RFC 6962, each hash in base64
}

// New makes a proof of its parts.
func New(index int64, leaf []byte, checkpoint string, path tlog.RecordProof) Proof {
	p := Proof{Index: index, Leaf: leaf, Checkpoint: checkpoint, Path: make([]string, len(path))}
	for i, hash := range path {
		p.Path[i] = hash.String()
	}
	return p
}

// maxPath is the most hashes in a proof: the log has fewer than 2^63 leaves.
const maxPath = 63

// Verify checks the checkpoint's signature and the path from the leaf to its root.
func (p Proof) Verify(key note.Verifier) error {
	c, err := Open(p.Checkpoint, key)
	if err != nil {
		return err
	}
	if len(p.Path) > maxPath {
		return fmt.Errorf("the proof has %d hashes", len(p.Path))
	}
	path := make(tlog.RecordProof, len(p.Path))
	for i, text := range p.Path {
		raw, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil || len(raw) != tlog.HashSize {
			return fmt.Errorf("hash %d of the proof is not 32 bytes in base64", i)
		}
		path[i] = tlog.Hash(raw)
	}
	if p.Index < 0 || p.Index >= c.Tree.N {
		return fmt.Errorf("the checkpoint is of %d leaves, without the one at %d", c.Tree.N, p.Index)
	}
	return tlog.CheckRecord(path, c.Tree.N, c.Tree.Hash, p.Index, tlog.RecordHash(p.Leaf))
}

// ReadLeaf reads a leaf in canonical form.
func ReadLeaf(data []byte) (l Leaf, err error) {
	if err := json.Unmarshal(data, &l, json.RejectUnknownMembers(true)); err != nil {
		return l, err
	}
	form, err := l.Bytes()
	if err == nil && string(form) != string(data) {
		err = errors.New("the leaf is not in canonical form")
	}
	return l, err
}
