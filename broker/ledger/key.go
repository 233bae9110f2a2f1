package ledger

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/parley-asp/parley/session/agreement/inclusion"
)

// purpose separates the log's key from all else that is derived from the secret.
const purpose = "parley log key v1"

// receipts separates the key that signs COSE Receipts from the one that signs checkpoints.
const receipts = "parley receipt key v1"

// seedType is what signed-note puts before an Ed25519 key.
const seedType = 1

// openKey derives the log's key, the same for all brokers of the installation.
func (l *Ledger) openKey() error {
	if l.origin = l.o.Origin; l.origin == "" {
		l.origin = "parley/" + string(l.o.Key)
	}
	if len(l.o.Secret) == 0 {
		return nil
	}
	seed, key, err := derive(l.o.Secret, l.origin)
	if err != nil {
		return err
	}
	l.key = key
	if l.verifier, err = inclusion.ParseKey(l.key); err != nil {
		return err
	}
	ofReceipts, err := hkdf.Expand(sha256.New, l.o.Secret, receipts, ed25519.SeedSize)
	if err != nil {
		return err
	}
	if l.receipts, err = inclusion.NewReceiptKey(ofReceipts); err != nil {
		return err
	}
	hash := strings.Split(strings.TrimPrefix(l.key, l.origin+"+"), "+")[0]
	l.signer, err = note.NewSigner("PRIVATE+KEY+" + l.origin + "+" + hash + "+" + base64.StdEncoding.EncodeToString(append([]byte{seedType}, seed...)))
	if err != nil {
		return fmt.Errorf("the log's origin %q: %w", l.origin, err)
	}
	return nil
}

// derive makes the log's key of the secret: its seed, and what verifies it.
func derive(secret []byte, origin string) (seed []byte, key string, err error) {
	if seed, err = hkdf.Expand(sha256.New, secret, purpose, ed25519.SeedSize); err != nil {
		return nil, "", err
	}
	public, _ := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	if key, err = note.NewEd25519VerifierKey(origin, public); err != nil {
		return nil, "", fmt.Errorf("the log's origin %q: %w", origin, err)
	}
	return seed, key, nil
}

// Foreign reports whether another installation than the one with this secret signed a checkpoint, whatever its log is called.
func Foreign(checkpoint string, secret []byte) bool {
	origin, _, _ := strings.Cut(checkpoint, "\n")
	_, key, err := derive(secret, origin)
	if err != nil {
		return false
	}
	verifier, err := inclusion.ParseKey(key)
	if err == nil {
		_, err = inclusion.Open(checkpoint, verifier)
	}
	_, unsigned := errors.AsType[*note.UnverifiedNoteError](err)
	return unsigned
}

// Origin is the log's name.
func (l *Ledger) Origin() string { return l.origin }

// VerifierKey is what verifies the log's checkpoints, "" if it publishes none.
func (l *Ledger) VerifierKey() string { return l.key }

// ReceiptKey is what verifies COSE Receipts of the log's leaves, as PEM, "" if it publishes none.
func (l *Ledger) ReceiptKey() string { return l.receipts.PEM() }
