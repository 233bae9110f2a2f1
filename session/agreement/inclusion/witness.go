package inclusion

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	cosignature "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"
)

// ParseWitness reads the key of a witness, which signs checkpoints with a time (C2SP
// tlog-cosignature, with Ed25519 or ML-DSA-44).
func ParseWitness(text string) (note.Verifier, error) {
	v, err := cosignature.NewVerifierForCosignatureV1(strings.TrimSpace(text))
	if err != nil {
		return nil, fmt.Errorf("the key of a witness is NAME+HASH+KEY: %w", err)
	}
	return v, nil
}

// Cosignatures are the lines of those witnesses that have cosigned a checkpoint, in the
// order of the witnesses. A wrong cosignature of one of them is an error.
func Cosignatures(signed string, witnesses []note.Verifier) (lines []string, err error) {
	n, err := note.Open([]byte(signed), note.VerifierList(witnesses...))
	if _, none := errors.AsType[*note.UnverifiedNoteError](err); none {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, w := range witnesses {
		i := slices.IndexFunc(n.Sigs, func(s note.Signature) bool { return s.Name == w.Name() && s.Hash == w.KeyHash() })
		if i < 0 {
			continue
		}
		if _, err := base64.StdEncoding.Strict().DecodeString(n.Sigs[i].Base64); err != nil {
			return nil, fmt.Errorf("the cosignature of %s is not canonical: %w", w.Name(), err)
		}
		lines = append(lines, "— "+w.Name()+" "+n.Sigs[i].Base64+"\n")
	}
	return lines, nil
}

// Cosigned checks that all witnesses have cosigned a checkpoint.
func Cosigned(signed string, witnesses []note.Verifier) error {
	for _, w := range witnesses {
		lines, err := Cosignatures(signed, []note.Verifier{w})
		if err == nil && len(lines) == 0 {
			err = fmt.Errorf("the witness %s has not cosigned the log's checkpoint", w.Name())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// VerifyCosigned is Verify, and that all witnesses have cosigned the checkpoint.
func (p Proof) VerifyCosigned(key note.Verifier, witnesses []note.Verifier) error {
	if err := p.Verify(key); err != nil {
		return err
	}
	return Cosigned(p.Checkpoint, witnesses)
}
