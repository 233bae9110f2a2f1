package archive

import (
	_ "embed"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/parley-asp/parley/store"
)

// compressionHeader says how a message is compressed; without it the message is not.
const compressionHeader = "Asp-Packed"

// The values of compressionHeader.
const (
	zstdPlain      = "zstd"          // RFC 8878
	zstdDictionary = "zstd-words-v1" // the same, with the dictionary
	zstdErased     = "zstd-erased"   // zstdPlain of what is left of erased entries, which versions before it refuse to read
)

// dictionary is what transcripts have in common. What was compressed with it cannot be
// read without it, so it never changes: another one would be zstd-words-v2, beside it.
//
//go:embed archive.dictionary
var dictionary []byte

const dictionaryID = 1 // in the frames

var encoders = sync.OnceValues(func() (e struct{ dictionary, plain *zstd.Encoder }, err error) {
	options := []zstd.EOption{zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1 << 20)}
	if e.plain, err = zstd.NewWriter(nil, options...); err != nil {
		return e, err
	}
	e.dictionary, err = zstd.NewWriter(nil, append(options, zstd.WithEncoderDictRaw(dictionaryID, dictionary))...)
	return e, err
})

var decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(partLimit), zstd.WithDecoderDictRaw(dictionaryID, dictionary))
})

// compress compresses a text; how is a value of compressionHeader.
func compress(how string, text []byte) ([]byte, error) {
	e, err := encoders()
	if err != nil {
		return nil, err
	}
	if how == zstdDictionary {
		return e.dictionary.EncodeAll(text, nil), nil
	}
	return e.plain.EncodeAll(text, nil), nil
}

// errCompression means that a later version compressed something.
var errCompression = errors.New("this version does not know the compression")

// decompress is the text of a message, by what its header says.
func decompress(m *store.Message) ([]byte, error) {
	switch how := m.Header.Get(compressionHeader); how {
	case "":
		return m.Data, nil
	case zstdPlain, zstdDictionary, zstdErased:
		d, err := decoder()
		if err != nil {
			return nil, err
		}
		return d.DecodeAll(m.Data, nil)
	default:
		return nil, fmt.Errorf("%w %q", errCompression, how)
	}
}
