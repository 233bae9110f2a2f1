package broker

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// In the archive a session is one message, or as many as it takes: its entries,
// byte for byte, one a line, and then packed. A server that was killed may have
// to read the whole archive before it serves, so bytes are what counts. The last
// message says that it is the last.
const (
	partHeader = "Asp-Part"      // from 1
	lastHeader = "Asp-Last"      // how many entries there are in all
	packHeader = "Asp-Packed"    // how; without it the entries are as they are
	partBytes  = 512 << 10       // before packing; an entry has at most half of that
	partLimit  = 8 * partBytes   // of what comes out
	zstdPlain  = "zstd"          // RFC 8878
	zstdWords  = "zstd-words-v1" // the same, with a dictionary
)

// words is what transcripts have in common. What was packed with it cannot be read
// without it, so it never changes: another one would be words-v2, beside it.
//
//go:embed archive.words
var words []byte

const wordsID = 1 // of words.v1, in the frames

var packers = sync.OnceValues(func() (p struct{ words, plain *zstd.Encoder }, err error) {
	options := []zstd.EOption{zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1 << 20)}
	if p.plain, err = zstd.NewWriter(nil, options...); err != nil {
		return p, err
	}
	p.words, err = zstd.NewWriter(nil, append(options, zstd.WithEncoderDictRaw(wordsID, words))...)
	return p, err
})

var unpacker = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(partLimit), zstd.WithDecoderDictRaw(wordsID, words))
})

// pack packs a text in one of the ways.
func pack(how string, text []byte) ([]byte, error) {
	p, err := packers()
	if err != nil {
		return nil, err
	}
	if how == zstdWords {
		return p.words.EncodeAll(text, nil), nil
	}
	return p.plain.EncodeAll(text, nil), nil
}

// errPacking means that something is packed in a way that came after this program.
var errPacking = errors.New("it is packed in a way that this version does not know")

// unpack is what was packed, by what the message says about it.
func unpack(how string, data []byte) ([]byte, error) {
	switch how {
	case "":
		return data, nil
	case zstdPlain, zstdWords:
		d, err := unpacker()
		if err != nil {
			return nil, err
		}
		return d.DecodeAll(data, nil)
	}
	return nil, fmt.Errorf("%w: %q", errPacking, how)
}

// ArchiveMessages are the messages that the archive has of a session: the same
// entries always make the same ones.
func ArchiveMessages(id performatives.SessionID, entries [][]byte) (all []store.Message, err error) {
	var now []byte
	for i, e := range entries {
		now = append(append(now, e...), '\n')
		last := i == len(entries)-1
		if !last && len(now)+len(entries[i+1]) <= partBytes {
			continue
		}
		m := store.Message{Subject: api.Archive(id), Header: store.Header{
			partHeader: {strconv.Itoa(len(all) + 1)}, packHeader: {zstdWords}, api.FormatHeader: {strconv.Itoa(performatives.Format)},
		}}
		if m.Data, err = pack(zstdWords, now); err != nil {
			return nil, err
		}
		if last {
			m.Header.Set(lastHeader, strconv.Itoa(len(entries)))
		}
		all, now = append(all, m), now[:0]
	}
	return all, nil
}

// unarchived are the entries in a message of the archive.
func unarchived(how string, data []byte) ([][]byte, error) {
	text, err := unpack(how, data)
	if err != nil {
		return nil, err
	}
	return bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")), nil
}
