package ledger_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/natskit"
)

// leavesOf is how many leaves the log of BenchmarkProof has.
const leavesOf = 1_000_000

// BenchmarkProof: the proof of a leaf anywhere in a log of a million leaves.
func BenchmarkProof(b *testing.B) {
	p := newPlace(b)
	p.ctx = b.Context() // a million leaves take longer than a test may
	var sent []*store.Pending
	drain := func() {
		for _, s := range sent {
			_, err := s.Stored()
			natskit.Must(b, err)
		}
		sent = sent[:0]
	}
	name := func(i int) string { return fmt.Sprintf("s%07d", i) }
	for i := range leavesOf {
		leaf, err := inclusion.Leaf{Type: inclusion.Session, Hash: "sha256:" + name(i), At: "2026-03-07T14:30:00.000000000Z"}.Bytes()
		natskit.Must(b, err)
		one, err := p.store.Send(api.LogStream, store.Message{
			Subject: api.Leaf(string(inclusion.Session), name(i)), Data: leaf, Header: store.Header{api.SessionHeader: {name(i)}},
		}, 0)
		natskit.Must(b, err)
		if sent = append(sent, one); len(sent) == 2000 {
			drain()
		}
	}
	drain()
	l := p.open(newBoard())
	l.has(leavesOf)
	key := l.verifier()
	i := 0
	for b.Loop() {
		i = (i + 7_919_003) % leavesOf
		proof, err := l.Proof(p.ctx, inclusion.Session, name(i))
		natskit.Must(b, err)
		if proof.Index != int64(i) {
			b.Fatalf("leaf %d is at %d", i, proof.Index)
		}
		natskit.Must(b, proof.Verify(key))
	}
}

// appenders are how many append at once in BenchmarkAppend, as brokers do for many sessions.
const appenders = 64

// BenchmarkAppend: 1,000 leaves from the first append until a checkpoint has them all.
func BenchmarkAppend(b *testing.B) {
	p := newPlace(b)
	p.ctx = b.Context()
	l := p.open(newBoard())
	size := 0
	for b.Loop() {
		const batch = 1000
		next := make(chan string)
		var appending sync.WaitGroup
		for range appenders {
			appending.Go(func() {
				for id := range next {
					l.append(id)
				}
			})
		}
		for i := range batch {
			next <- fmt.Sprintf("s%07d", size+i)
		}
		close(next)
		appending.Wait()
		size += batch
		l.has(int64(size))
	}
}
