package adversary

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// entries are a session's transcript, as the api gives it to a party.
func (w *world) entries(a performatives.Agent, id performatives.SessionID) [][]byte {
	w.Helper()
	return entriesFor(w.Principal(a), id)
}

func entriesFor(p *testkit.Principal, id performatives.SessionID) [][]byte {
	p.Helper()
	var page struct {
		Messages []jsontext.Value `json:"messages"`
	}
	testkit.Must(p, json.Unmarshal(p.Call(api.SessionMessages.Name, fmt.Sprintf(`{"sessionId":%q}`, id)).Data, &page))
	all := make([][]byte, len(page.Messages))
	for i, m := range page.Messages {
		all[i] = m
	}
	return all
}

// faults are what the verifier finds.
func (w *world) faults(entries [][]byte, expect transcript.Expect) []transcript.Fault {
	w.Helper()
	faults, err := transcript.Verify(bytes.NewReader(bytes.Join(entries, []byte("\n"))), w.Server.Broker.Command.Key(), expect)
	testkit.Must(w, err)
	return faults
}

// A bending is what somebody makes of a genuine export, and what the verifier has to say to it.
type bending struct {
	make func(entries [][]byte) [][]byte
	rule transcript.Rule
}

func (w *world) bent(entries [][]byte, expect transcript.Expect, all map[string]bending) {
	w.Helper()
	if faults := w.faults(entries, expect); len(faults) > 0 {
		w.Fatalf("the genuine export: %v", faults)
	}
	for name, b := range all {
		faults := w.faults(b.make(slices.Clone(entries)), expect)
		if !slices.ContainsFunc(faults, func(f transcript.Fault) bool { return f.Rule == b.rule }) {
			w.Errorf("%s: %v, want %s", name, faults, b.rule)
		}
	}
}

func integrity(e map[string]any) map[string]any { return e["integrity"].(map[string]any) }
func receipt(e map[string]any) map[string]any   { return integrity(e)["receipt"].(map[string]any) }
func body(e map[string]any) map[string]any {
	return e["content"].(map[string]any)["body"].(map[string]any)
}

// dearer is the offer p1, the entry 3, for another price.
func dearer(e map[string]any) { body(e)["terms"] = map[string]any{"price": 1} }

// sealed is an entry that somebody receipts, with the hash that it has.
func (w *world) sealed(entry []byte, by performatives.Signer, change func(*performatives.Stamp)) []byte {
	w.Helper()
	m, stamp, _, err := performatives.ReadDelivered(entry)
	testkit.Must(w, err)
	at, err := stamp.AcceptedAt()
	testkit.Must(w, err)
	state := stamp.Receipt.State
	if change != nil {
		change(&stamp)
	}
	data, _, err := m.Deliver(stamp, at, state, by)
	testkit.Must(w, err)
	return data
}

// TestTampering changes an export: receipts, entries, their order, and pieces of another
// session. Whoever does it does not have the broker's key.
func TestTampering(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	second := w.opens(alpha, beta)
	w.Principal(beta).Say(second, testkit.Offer("p1", 1))
	forger := w.Principal(eve).Signer
	last := w.Principal(alpha).Say(w.deal, &performatives.AcceptBody{ReferenceID: "p1"})
	entries, foreign := w.entries(alpha, w.deal), w.entries(alpha, second)
	at := func(n int, change func(map[string]any)) func([][]byte) [][]byte {
		return func(all [][]byte) [][]byte {
			all[n] = bend(t, all[n], change)
			return all
		}
	}
	expect := transcript.Expect{Session: w.deal, Head: last.Hash, Length: len(entries)}
	w.bent(entries, expect, map[string]bending{
		"another price":     {at(3, dearer), transcript.Hash},
		"no signature":      {at(3, func(e map[string]any) { delete(integrity(e), "signature") }), transcript.Hash},
		"another sender":    {at(3, func(e map[string]any) { e["sender"] = map[string]any{"agentId": alpha} }), transcript.Hash},
		"another key":       {at(0, func(e map[string]any) { pinned(e, forger.Key()) }), transcript.Hash},
		"another state":     {at(3, func(e map[string]any) { receipt(e)["state"] = "CLOSED" }), transcript.Receipt},
		"another time":      {at(3, func(e map[string]any) { receipt(e)["acceptedAt"] = "2026-01-01T00:00:00.000000000Z" }), transcript.Receipt},
		"another broker":    {at(3, func(e map[string]any) { receipt(e)["broker"] = forger.Key() }), transcript.Receipt},
		"no receipt":        {at(3, func(e map[string]any) { delete(integrity(e), "receipt") }), transcript.Receipt},
		"another's receipt": {at(3, func(e map[string]any) { integrity(e)["receipt"] = copied(t, entries[2]) }), transcript.Receipt},
		"a receipt of my own": {func(all [][]byte) [][]byte {
			all[3] = w.sealed(all[3], forger, nil)
			return all
		}, transcript.Receipt},
		"a receipt of my own in the broker's name": {func(all [][]byte) [][]byte {
			all[3] = bend(t, w.sealed(all[3], forger, nil), func(e map[string]any) { receipt(e)["broker"] = w.Server.Broker.Command.Key() })
			return all
		}, transcript.Receipt},
		"another price, hashed again": {func(all [][]byte) [][]byte {
			all[3] = bend(t, w.sealed(bend(t, all[3], dearer), forger, nil), func(e map[string]any) { receipt(e)["broker"] = w.Server.Broker.Command.Key() })
			return all
		}, transcript.Receipt},
		"an entry of my own": {func(all [][]byte) [][]byte {
			m, err := performatives.Read(w.Principal(eve).Envelope(w.deal, &performatives.CloseBody{Outcome: "completed"}))
			testkit.Must(t, err)
			data, _, err := m.Deliver(performatives.Stamp{Sequence: uint64(len(all)), PreviousHash: last.Hash}, m.Timestamp, "CLOSED", forger)
			testkit.Must(t, err)
			return append(all, data)
		}, transcript.Receipt},
		"the sender's envelope as an entry": {func(all [][]byte) [][]byte {
			return append(all, w.Principal(beta).Envelope(w.deal, testkit.Fact("never accepted")))
		}, transcript.Receipt},
		"one left out":         {func(all [][]byte) [][]byte { return slices.Delete(all, 2, 3) }, transcript.Sequence},
		"the first left out":   {func(all [][]byte) [][]byte { return all[1:] }, transcript.Sequence},
		"the last left out":    {func(all [][]byte) [][]byte { return all[:len(all)-1] }, transcript.Length},
		"one twice":            {func(all [][]byte) [][]byte { return slices.Insert(all, 3, all[2]) }, transcript.Duplicate},
		"two in another order": {func(all [][]byte) [][]byte { all[2], all[3] = all[3], all[2]; return all }, transcript.Sequence},
		"an entry of another":  {func(all [][]byte) [][]byte { all[3] = foreign[3]; return all }, transcript.Session},
		"the end of another":   {func(all [][]byte) [][]byte { return append(all[:3], foreign[3:]...) }, transcript.Session},
		"the whole of another": {func([][]byte) [][]byte { return foreign }, transcript.Session},
		"another spelling":     {func(all [][]byte) [][]byte { all[3] = append([]byte(" "), all[3]...); return all }, transcript.Canonical},
		"a key twice": {func(all [][]byte) [][]byte {
			all[3] = bytes.Replace(all[3], []byte(`{"content"`), []byte(`{"content":1,"content"`), 1)
			return all
		}, transcript.JSON},
		"nothing": {func([][]byte) [][]byte { return nil }, transcript.Length},
	})
	// The same pieces, spliced into the other session's export, and verified as that.
	other := transcript.Expect{Session: second}
	w.bent(foreign, other, map[string]bending{
		"the other way round": {func(all [][]byte) [][]byte { return append(all[:3], entries[3:]...) }, transcript.Session},
	})
}

func pinned(e map[string]any, k performatives.Key) {
	for _, m := range integrity(e)["joined"].([]any) {
		m.(map[string]any)["key"] = k
	}
}

func copied(t *testing.T, entry []byte) (of map[string]any) {
	t.Helper()
	bend(t, entry, func(e map[string]any) { of = receipt(e) })
	return of
}

// TestLyingBroker: whoever has the broker's key bends the record and receipts it anew. It
// cannot say what a principal has not signed, nor where a sender has not put it; whom it left
// out knows by the hash of the acceptance that the broker gave it.
func TestLyingBroker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key, err := server.ReadSeed(filepath.Join(w.Data, server.BrokerSeed))
	testkit.Must(t, err)
	liar, err := performatives.NewSigner(key)
	testkit.Must(t, err)
	linked := func(d *performatives.Draft) {
		entries := w.read(alpha)
		next := entries[len(entries)-1].Next()
		d.Link = &next
	}
	w.Principal(alpha).Say(w.deal, testkit.Fact("first"))
	w.Principal(alpha).Say(w.deal, testkit.Fact("second"), linked)
	last := w.Principal(alpha).Say(w.deal, &performatives.AcceptBody{ReferenceID: "p1"})
	// chained receipts all entries again, from one on, so that hashes and places fit.
	chained := func(all [][]byte) [][]byte {
		link := performatives.Link{PreviousHash: performatives.NoHash}
		for i, data := range all {
			moved := bend(t, data, func(e map[string]any) {
				e["sequenceNumber"], integrity(e)["previousHash"] = link.Sequence, link.PreviousHash
			})
			all[i] = w.sealed(moved, liar, func(s *performatives.Stamp) { s.Sequence, s.PreviousHash = link.Sequence, link.PreviousHash })
			_, stamp, _, err := performatives.ReadDelivered(all[i])
			testkit.Must(t, err)
			link = performatives.Link{Sequence: stamp.Sequence + 1, PreviousHash: stamp.Hash}
		}
		return all
	}
	entries := w.entries(alpha, w.deal)
	if faults := w.faults(chained(slices.Clone(entries)), transcript.Expect{}); len(faults) > 0 {
		t.Fatalf("what the liar does is found where it changes nothing: %v", faults)
	}
	bent := func(n int, change func(map[string]any)) func([][]byte) [][]byte {
		return func(all [][]byte) [][]byte {
			all[n] = bend(t, all[n], change)
			return chained(all)
		}
	}
	w.bent(entries, transcript.Expect{}, map[string]bending{
		"another price":             {bent(3, dearer), transcript.Signature},
		"another sender":            {bent(3, func(e map[string]any) { e["sender"] = map[string]any{"agentId": alpha} }), transcript.Signature},
		"a sender who never joined": {bent(3, func(e map[string]any) { e["sender"] = map[string]any{"agentId": eve} }), transcript.Pinned},
		"another key for alpha":     {bent(0, func(e map[string]any) { pinned(e, w.Principal(eve).Signer.Key()) }), transcript.Signature},
		"no signature":              {bent(3, func(e map[string]any) { delete(integrity(e), "signature") }), transcript.Signature},
		"before a sender's link":    {func(all [][]byte) [][]byte { return chained(slices.Delete(all, 4, 5)) }, transcript.Signature},
	})
	w.bent(entries, transcript.Expect{Head: last.Hash}, map[string]bending{
		"an entry left out": {func(all [][]byte) [][]byte { return chained(append(all[:3], all[6])) }, transcript.Head},
		"the end left out":  {func(all [][]byte) [][]byte { return all[:3] }, transcript.Head},
	})
}

// read is the transcript as it is now.
func (w *world) read(a performatives.Agent) (all []transcript.Entry) {
	w.Helper()
	for _, data := range w.entries(a, w.deal) {
		e, err := transcript.Read(data)
		testkit.Must(w, err)
		all = append(all, e)
	}
	return all
}
