package inclusion

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/fxamacker/cbor/v2"
	"github.com/veraison/go-cose"
	"golang.org/x/mod/sumdb/tlog"
)

// Labels of a COSE Receipt (RFC 9942) that COSE itself does not have.
const (
	labelClaims    = int64(15)  // CWT claims (RFC 9597)
	labelStructure = int64(395) // which verifiable data structure
	labelProofs    = int64(396) // proofs in it

	rfc9162SHA256   = int64(1)  // the structure of this log
	inclusionProofs = int64(-1) // the kind of proof

	claimIssuer  = int64(1)
	claimSubject = int64(2)

	kidBytes = 8
)

// A ReceiptKey signs COSE Receipts, and nothing else.
type ReceiptKey struct {
	signer cose.Signer
	kid    []byte
	pem    string
}

// NewReceiptKey is the key with this seed.
func NewReceiptKey(seed []byte) (k ReceiptKey, err error) {
	private := ed25519.NewKeyFromSeed(seed)
	if k.signer, err = cose.NewSigner(cose.AlgorithmEdDSA, private); err != nil {
		return k, err
	}
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		return k, err
	}
	sum := sha256.Sum256(public)
	k.kid, k.pem = sum[:kidBytes], string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))
	return k, nil
}

// PEM is what verifies its receipts, as SubjectPublicKeyInfo.
func (k ReceiptKey) PEM() string { return k.pem }

// A SignedRoot is the root of one checkpoint, signed for the receipts of all its leaves.
type SignedRoot struct{ message cose.Sign1Message }

// Sign signs the root of a checkpoint.
func (k ReceiptKey) Sign(c Checkpoint) (s SignedRoot, err error) {
	s.message = cose.Sign1Message{
		Headers: cose.Headers{Protected: cose.ProtectedHeader{
			cose.HeaderLabelAlgorithm: cose.AlgorithmEdDSA,
			cose.HeaderLabelKeyID:     k.kid,
			labelStructure:            rfc9162SHA256,
			labelClaims:               map[any]any{claimIssuer: c.Origin, claimSubject: c.Origin + "#" + strconv.FormatInt(c.Tree.N, 10)},
		}},
		Payload: c.Tree.Hash[:],
	}
	return s, s.message.Sign(nil, nil, k.signer)
}

// Receipt is the receipt of the leaf that a path to the root of size leaves belongs to.
func (s SignedRoot) Receipt(size, index int64, path tlog.RecordProof) ([]byte, error) {
	hashes := make([][]byte, len(path))
	for i, hash := range path {
		hashes[i] = hash[:]
	}
	proof, err := cbor.Marshal([]any{size, index, hashes})
	if err != nil {
		return nil, err
	}
	m := s.message
	m.Payload = nil // a verifier makes it of leaf and path
	m.Headers.Unprotected = cose.UnprotectedHeader{labelProofs: map[any]any{inclusionProofs: [][]byte{proof}}}
	return m.MarshalCBOR()
}

// ParseReceiptKey reads the PEM of a key of receipts.
func ParseReceiptKey(text string) (ed25519.PublicKey, error) {
	block, rest := pem.Decode([]byte(text))
	if block == nil || strings.TrimSpace(string(rest)) != "" {
		return nil, errors.New("the key of receipts is no PEM")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the key of receipts: %w", err)
	}
	public, is := key.(ed25519.PublicKey)
	if !is {
		return nil, errors.New("the key of receipts is not an Ed25519 key")
	}
	return public, nil
}

var errReceipt = errors.New("it is no COSE Receipt with one inclusion proof of RFC9162_SHA256")

// VerifyReceipt checks that a receipt is of this proof, and signed by the key of receipts. It takes
// the checkpoint as it is: [Proof.Verify] checks that.
func (p Proof) VerifyReceipt(receipt []byte, key crypto.PublicKey) error {
	var m cose.Sign1Message
	if err := m.UnmarshalCBOR(receipt); err != nil {
		return fmt.Errorf("%w: %w", errReceipt, err)
	}
	size, index, path, err := proofIn(m.Headers.Unprotected)
	if err != nil || m.Payload != nil || m.Headers.Protected[labelStructure] != rfc9162SHA256 {
		return errReceipt
	}
	text, _, _ := strings.Cut(p.Checkpoint, "\n\n")
	c, err := parse(text + "\n")
	if err != nil {
		return err
	}
	if size != c.Tree.N || index != p.Index {
		return fmt.Errorf("the receipt is of leaf %d of %d; the proof, of %d of %d", index, size, p.Index, c.Tree.N)
	}
	if err := tlog.CheckRecord(path, size, c.Tree.Hash, index, tlog.RecordHash(p.Leaf)); err != nil {
		return err
	}
	verifier, err := cose.NewVerifier(cose.AlgorithmEdDSA, key)
	if err != nil {
		return err
	}
	m.Payload = c.Tree.Hash[:]
	if err := m.Verify(nil, verifier); err != nil {
		return fmt.Errorf("the receipt's signature: %w", err)
	}
	m.Payload, m.Headers.RawUnprotected, m.Headers.RawProtected = nil, nil, nil
	if again, err := m.MarshalCBOR(); err != nil || !bytes.Equal(again, receipt) {
		return errReceipt // it is written in another way
	}
	return nil
}

// proofIn reads the inclusion proof of a receipt.
func proofIn(h cose.UnprotectedHeader) (size, index int64, path tlog.RecordProof, err error) {
	proofs, is := h[labelProofs].(map[any]any)
	if !is || len(h) != 1 || len(proofs) != 1 {
		return 0, 0, nil, errReceipt
	}
	list, is := proofs[inclusionProofs].([]any)
	if !is || len(list) != 1 {
		return 0, 0, nil, errReceipt
	}
	raw, is := list[0].([]byte)
	var proof struct {
		_           struct{} `cbor:",toarray"`
		Size, Index int64
		Path        [][]byte
	}
	if !is || cbor.Unmarshal(raw, &proof) != nil || len(proof.Path) > maxPath {
		return 0, 0, nil, errReceipt
	}
	for _, hash := range proof.Path {
		if len(hash) != tlog.HashSize {
			return 0, 0, nil, errReceipt
		}
		path = append(path, tlog.Hash(hash))
	}
	return proof.Size, proof.Index, path, nil
}
