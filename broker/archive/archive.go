// Package archive moves ended sessions out of the stream of transcripts, and reads transcripts wherever they are.
//
//	a, err := archive.Open(ctx, archive.Options{
//		Store: s, List: list, Ended: ended,
//		Policy: archive.Policy{After: 24 * time.Hour, Failed: 90 * 24 * time.Hour},
//	})
//	if err != nil { … }
//	defer a.Close()
//	page, err := archive.NewReader(s, log).Page(ctx, api.ListMessages{Session: id}, sequences, archived)
//
// A transcript leaves its stream once the archive has all of it on disk, and a
// session's row leaves the session list once the archive's index has it on disk.
// The same entries always make the same messages, and each write is conditional:
// any number of brokers may archive, and one may go on where another stopped.
package archive

import (
	"bytes"
	"strconv"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// A session is one message in the archive, or as many as it takes: its entries,
// byte for byte, one a line, and then compressed. A server that was killed may have
// to read the whole archive before it serves, so its size matters.
const (
	partHeader = "Asp-Part"    // from 1
	lastHeader = "Asp-Last"    // only on the last message: how many entries there are in all
	partBytes  = 512 << 10     // before compression; an entry has at most half of that
	partLimit  = 8 * partBytes // after decompression
)

// Messages are the messages that the archive has of a session.
func Messages(id performatives.SessionID, entries []Entry) (all []store.Message, err error) {
	return messages(id, entries, zstdDictionary)
}

func messages(id performatives.SessionID, entries []Entry, how string) (all []store.Message, err error) {
	var part []byte
	for i, e := range entries {
		text, err := e.line()
		if err != nil {
			return nil, err
		}
		part = append(append(part, text...), '\n')
		last := i == len(entries)-1
		if !last && len(part)+entries[i+1].Size() <= partBytes {
			continue
		}
		m := store.Message{Subject: api.Archive(id), Header: store.Header{
			partHeader: {strconv.Itoa(len(all) + 1)}, compressionHeader: {how}, api.FormatHeader: {strconv.Itoa(performatives.Format)},
		}}
		if m.Data, err = compress(how, part); err != nil {
			return nil, err
		}
		if last {
			m.Header.Set(lastHeader, strconv.Itoa(len(entries)))
		}
		all, part = append(all, m), part[:0]
	}
	return all, nil
}

// entriesIn are the entries in a message of the archive.
func entriesIn(m *store.Message) (entries []Entry, err error) {
	text, err := decompress(m)
	if err != nil {
		return nil, err
	}
	for data := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		e, err := readLine(data)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}
