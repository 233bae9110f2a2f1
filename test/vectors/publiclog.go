package vectors

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/agreement/inclusion"
)

// A PublicLog is proofs of one log (C2SP tlog-tiles, tlog-checkpoint and signed-note; hashes of RFC 6962).
type PublicLog struct {
	Key         string        `json:"key"`
	Inclusion   []Included    `json:"inclusion"`
	Consistency []Consistency `json:"consistency"`
}

// Included is a leaf that is said to be in the log.
type Included struct {
	Name    string `json:"name"`
	About   string `json:"about"`
	Refused string `json:"refused,omitzero"` // checkpoint or proof; "" is accepted
	inclusion.Proof
}

// Consistency is one checkpoint that is said to have all leaves of an older one.
type Consistency struct {
	Name    string   `json:"name"`
	About   string   `json:"about"`
	Old     string   `json:"old"`
	New     string   `json:"new"`
	Proof   []string `json:"proof"`
	Refused string   `json:"refused,omitzero"` // checkpoint or proof; "" is accepted
}

const logOrigin = "parley.example/log"

// A publicLogOf sessions is a log with their leaves after a few others.
type publicLogOf struct {
	key    string
	signer note.Signer
	hashes []tlog.Hash // as tlog stores them
	leaves [][]byte
	proofs map[string]inclusion.Proof // in the newest checkpoint, by the leaf's hash
}

// seedType is Ed25519 in a signed note's keys.
const seedType = 1

func newLog(sessions ...*table) (*publicLogOf, error) {
	l := &publicLogOf{proofs: map[string]inclusion.Proof{}}
	seed := sha256.Sum256([]byte("parley vectors: log"))
	public, _ := ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey)
	var err error
	if l.key, err = note.NewEd25519VerifierKey(logOrigin, public); err != nil {
		return nil, err
	}
	hash := strings.Split(l.key, "+")[1]
	l.signer, err = note.NewSigner("PRIVATE+KEY+" + logOrigin + "+" + hash + "+" + base64.StdEncoding.EncodeToString(append([]byte{seedType}, seed[:]...)))
	if err != nil {
		return nil, err
	}
	for i := range 3 {
		sum := sha256.Sum256([]byte{byte(i)})
		if err := l.add(inclusion.Leaf{Type: inclusion.Session, Hash: fmt.Sprintf("sha256:%x", sum), At: fmt.Sprintf("2026-03-07T14:0%d:00Z", i)}); err != nil {
			return nil, err
		}
	}
	for _, t := range sessions {
		d, err := agreed(t, nil)
		if err != nil {
			return nil, err
		}
		last := t.entries[len(t.entries)-1].Stamp
		leaf, err := d.Leaf(madeAt(t, d), agreement.Publish{})
		if err == nil {
			err = l.append(leaf)
		}
		if err == nil {
			err = l.add(inclusion.Leaf{Type: inclusion.Session, Hash: string(last.Hash), At: last.Receipt.AcceptedAt})
		}
		if err != nil {
			return nil, err
		}
	}
	newest, err := l.checkpoint(len(l.leaves))
	if err != nil {
		return nil, err
	}
	for i, raw := range l.leaves {
		path, err := tlog.ProveRecord(int64(len(l.leaves)), int64(i), l)
		if err != nil {
			return nil, err
		}
		leaf, err := inclusion.ReadLeaf(raw)
		if err != nil {
			return nil, err
		}
		l.proofs[leaf.Hash] = inclusion.New(int64(i), raw, newest, path)
	}
	return l, nil
}

// madeAt is when the entry that made a session's agreement was accepted: its CLOSE, or what confirmed it, if it has one.
func madeAt(t *table, d agreement.Document) string {
	made := d.Evidence.Close
	if n := len(d.Evidence.Confirmed); n > 0 {
		made = d.Evidence.Confirmed[n-1]
	} else if made == nil {
		made = d.Evidence.Acceptance
	}
	for _, e := range t.entries {
		if string(e.Bytes) == string(made) {
			return e.Stamp.Receipt.AcceptedAt
		}
	}
	return ""
}

func (l *publicLogOf) add(leaf inclusion.Leaf) error {
	data, err := leaf.Bytes()
	if err != nil {
		return err
	}
	return l.append(data)
}

func (l *publicLogOf) append(leaf []byte) error {
	hashes, err := tlog.StoredHashes(int64(len(l.leaves)), leaf, l)
	l.hashes, l.leaves = append(l.hashes, hashes...), append(l.leaves, leaf)
	return err
}

// ReadHashes is for tlog.
func (l *publicLogOf) ReadHashes(wanted []int64) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(wanted))
	for i, at := range wanted {
		found[i] = l.hashes[at]
	}
	return found, nil
}

// checkpoint is signed, of the first leaves.
func (l *publicLogOf) checkpoint(size int) (string, error) {
	root, err := tlog.TreeHash(int64(size), l)
	if err != nil {
		return "", err
	}
	signed, err := note.Sign(&note.Note{Text: inclusion.Checkpoint{Origin: logOrigin, Tree: tlog.Tree{N: int64(size), Hash: root}}.Text()}, l.signer)
	return string(signed), err
}

func publicLog(l *publicLogOf) (p PublicLog, err error) {
	p.Key = l.key
	newest := len(l.leaves)
	proofOf := func(i int) inclusion.Proof {
		for _, proof := range l.proofs {
			if proof.Index == int64(i) {
				return proof
			}
		}
		return inclusion.Proof{}
	}
	for i := range newest {
		p.Inclusion = append(p.Inclusion, Included{Name: fmt.Sprintf("leaf-%d", i), About: "a leaf of the log", Proof: proofOf(i)})
	}
	include := func(name, about, refused string, change func(*inclusion.Proof)) {
		proof := proofOf(2)
		proof.Path = append([]string{}, proof.Path...)
		change(&proof)
		p.Inclusion = append(p.Inclusion, Included{Name: name, About: about, Proof: proof, Refused: refused})
	}
	old, err := l.checkpoint(2)
	if err != nil {
		return p, err
	}
	include("changed-leaf", "another time in the leaf", "proof", func(p *inclusion.Proof) { p.Leaf = []byte(strings.Replace(string(p.Leaf), "14:02", "14:03", 1)) })
	include("other-index", "the place of another leaf", "proof", func(p *inclusion.Proof) { p.Index = 1 })
	include("changed-proof", "two hashes have changed places", "proof", func(p *inclusion.Proof) { p.Path[0], p.Path[1] = p.Path[1], p.Path[0] })
	include("missing-hash", "a hash of the proof is missing", "proof", func(p *inclusion.Proof) { p.Path = p.Path[1:] })
	include("beyond", "the checkpoint has fewer leaves", "proof", func(p *inclusion.Proof) { p.Checkpoint = old })
	include("changed-checkpoint", "the size is another, and was not signed", "checkpoint", func(p *inclusion.Proof) {
		p.Checkpoint = strings.Replace(p.Checkpoint, fmt.Sprintf("\n%d\n", newest), fmt.Sprintf("\n%d\n", newest+1), 1)
	})

	signed := func(size int) string {
		text, signErr := l.checkpoint(size)
		if err == nil {
			err = signErr
		}
		return text
	}
	grows := func(from, to int) Consistency {
		c := Consistency{Name: fmt.Sprintf("%d-%d", from, to), About: "the log has grown", Old: signed(from), New: signed(to), Proof: []string{}}
		proof, proveErr := tlog.ProveTree(int64(to), int64(from), l)
		if err == nil {
			err = proveErr
		}
		for _, hash := range proof {
			c.Proof = append(c.Proof, hash.String())
		}
		return c
	}
	for _, sizes := range [][2]int{{1, 2}, {2, newest}, {3, 4}, {4, newest}, {newest, newest}} {
		p.Consistency = append(p.Consistency, grows(sizes[0], sizes[1]))
	}
	differ := func(name, about, refused string, change func(*Consistency)) {
		c := grows(3, newest)
		change(&c)
		c.Name, c.About, c.Refused = name, about, refused
		p.Consistency = append(p.Consistency, c)
	}
	root := strings.Split(signed(2), "\n")[2]
	forked, forkErr := note.Sign(&note.Note{Text: logOrigin + "\n3\n" + root + "\n"}, l.signer)
	differ("forked", "the log signed another tree of the old size", "proof", func(c *Consistency) { c.Old = string(forked) })
	differ("changed-proof", "two hashes have changed places", "proof", func(c *Consistency) { c.Proof[0], c.Proof[1] = c.Proof[1], c.Proof[0] })
	differ("missing-hash", "a hash of the proof is missing", "proof", func(c *Consistency) { c.Proof = c.Proof[1:] })
	differ("shrunk", "the newer checkpoint has fewer leaves", "proof", func(c *Consistency) { c.Old, c.New = c.New, c.Old })
	differ("changed-checkpoint", "the old size is another, and was not signed", "checkpoint", func(c *Consistency) { c.Old = strings.Replace(c.Old, "\n3\n", "\n2\n", 1) })
	if err == nil {
		err = forkErr
	}
	return p, err
}
