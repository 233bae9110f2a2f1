package store

import (
	"context"

	"github.com/parley-asp/parley/api"
)

// Erasable reports whether the streams of ended sessions let a message be erased. Those that were
// made before there was erasure deny it, and a stream cannot give that up: a restored one can. A broker of an earlier
// release may have made them deny it meanwhile.
func (s *Store) Erasable(ctx context.Context) (bool, error) {
	for _, name := range []string{api.ArchiveStream, api.ArchiveIndexStream, api.CaseLogStream} {
		known, err := s.stream(ctx, name)
		if err != nil {
			return false, err
		}
		info, err := known.Info(ctx)
		if err != nil || info.Config.DenyDelete {
			return false, err
		}
	}
	return true, nil
}

// Erase overwrites the message with a sequence, if it is there.
func (s *Store) Erase(ctx context.Context, stream string, sequence uint64) error {
	known, err := s.stream(ctx, stream) // none that is erased from has shards
	if err != nil {
		return err
	}
	failed := known.SecureDeleteMsg(ctx, sequence)
	if failed == nil {
		return nil
	}
	if m, err := s.At(ctx, stream, sequence); m == nil {
		return err // it was not there
	}
	return failed
}

// EraseAll overwrites the messages on a subject that are of it; nil is all.
func (s *Store) EraseAll(ctx context.Context, stream, subject string, of func(Message) bool) error {
	var sequences []uint64
	if err := s.Read(ctx, stream, subject, 0, func(m Message) error {
		if of == nil || of(m) {
			sequences = append(sequences, m.Sequence)
		}
		return nil
	}); err != nil {
		return err
	}
	for _, sequence := range sequences {
		if err := s.Erase(ctx, stream, sequence); err != nil {
			return err
		}
	}
	return nil
}
