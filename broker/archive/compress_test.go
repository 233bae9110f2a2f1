package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// What was compressed with the dictionary can be read only with the same dictionary.
func TestDictionaryNeverChanges(t *testing.T) {
	t.Parallel()
	const want = "517185b8a24a0e4ef6946b1e10a167a6058d568939a42c1a3c3dd70577e3099b"
	if sum := sha256.Sum256(dictionary); hex.EncodeToString(sum[:]) != want {
		t.Errorf("archive.dictionary has changed (%x): what was archived with it cannot be read; add another file for another dictionary", sum)
	}
	data, err := base64.StdEncoding.DecodeString(released)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := decompress(compressed(zstdDictionary, data)); err != nil || string(text) != releasedText {
		t.Errorf("an earlier version's message: %q, %v", text, err)
	}
}

func compressed(how string, data []byte) *store.Message {
	return &store.Message{Header: store.Header{compressionHeader: {how}}, Data: data}
}

const (
	releasedText = `{"performative":"PROPOSE","sender":{"agentId":"agent://acme.com/alpha"},"sequenceNumber":0}` + "\n"
	released     = "KLUv/QUAAbUAAEh7YWxwaGEwfQoDADJDKzlkFCvkXQEj4jHG"
)

// Whatever the entries, the archive has them byte for byte, in messages of a bounded size, each of which says how it is compressed.
func TestMessages(t *testing.T) {
	t.Parallel()
	const id performatives.SessionID = "019478a3-0001-7def-8a12-000000000001"
	for name, entries := range map[string][][]byte{
		"one":   {[]byte(`{"a":1}`)},
		"empty": {{}, []byte("x"), {}},
		"large": {bytes.Repeat([]byte("a"), partBytes-1), []byte("b"), bytes.Repeat([]byte("c"), partBytes), []byte("d")},
		"many": func() (all [][]byte) {
			for i := range 20_000 {
				all = append(all, fmt.Appendf(nil, `{"sequenceNumber":%d,"integrity":{"hash":"sha256:%x"}}`, i, sha256.Sum256([]byte{byte(i), byte(i >> 8)})))
			}
			return all
		}(),
	} {
		var stored []Entry
		for _, e := range entries {
			stored = append(stored, Entry{Data: e})
		}
		messages, err := Messages(id, stored)
		if err != nil {
			t.Fatal(err)
		}
		var got [][]byte
		for i, m := range messages {
			more, err := entriesIn(&m)
			if err != nil {
				t.Fatal(err)
			}
			if last := i == len(messages)-1; m.Header.Get(partHeader) != fmt.Sprint(i+1) || (m.Header.Get(lastHeader) == fmt.Sprint(len(entries))) != last {
				t.Errorf("%s: message %d says %v", name, i, m.Header)
			}
			for _, e := range more {
				got = append(got, e.Data)
			}
		}
		if !bytes.Equal(bytes.Join(got, []byte("\n")), bytes.Join(entries, []byte("\n"))) || len(got) != len(entries) {
			t.Errorf("%s: %d entries come back, of %d", name, len(got), len(entries))
		}
	}
	if plain, err := entriesIn(compressed("", []byte("{}\n{}\n"))); err != nil || len(plain) != 2 { // as the first versions wrote them
		t.Errorf("not compressed: %q, %v", plain, err)
	}
	if _, err := entriesIn(compressed("zstd-words-v2", nil)); !errors.Is(err, errCompression) {
		t.Errorf("a later version's compression: %v", err)
	}
}
