package performatives

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"sync"

	"filippo.io/edwards25519"
)

// A comb is one public key taken to many multiples, so that a signature by it
// is checked in half the time: where the standard library doubles a point 252
// times, these are added. It computes what crypto/ed25519 does, to the byte:
// whether [S]B - [k]A, encoded, is the signature's first half (RFC 8032 §5.1.7,
// without the cofactor). Nothing in it is secret, so nothing has to take the
// same time.
//
// The scalar k is 64 digits to base 16, written in rows of four, and rows[r] has
// 1 to 8 times 16^(4r) A. A column is one digit of each row; between two columns
// the sum is doubled four times.
type comb struct {
	public [ed25519.PublicKeySize]byte
	rows   [combRows][8]edwards25519.Point
}

const (
	combRows    = 16
	combColumns = 64 / combRows
)

// newComb is nil for bytes that are no point of the curve.
func newComb(public ed25519.PublicKey) *comb {
	point, err := new(edwards25519.Point).SetBytes(public)
	if err != nil {
		return nil
	}
	c := &comb{public: [ed25519.PublicKeySize]byte(public)}
	for r := range c.rows {
		multiples(c.rows[r][:], point)
	}
	return c
}

// multiples are once the point, twice and so on; the point moves to the next row.
func multiples(row []edwards25519.Point, point *edwards25519.Point) {
	row[0].Set(point)
	for i := 1; i < len(row); i++ {
		row[i].Add(&row[i-1], point)
	}
	for range 256 / combRows {
		point.Double(point)
	}
}

// base is the same for the curve's base point, with digits to base 256.
var base = sync.OnceValue(func() *[combRows][128]edwards25519.Point {
	rows, point := new([combRows][128]edwards25519.Point), edwards25519.NewGeneratorPoint()
	for r := range rows {
		multiples(rows[r][:], point)
	}
	return rows
})

// verify tells whether the signature is one of the message by the key.
func (c *comb) verify(message, signature []byte) bool {
	if len(signature) != ed25519.SignatureSize {
		return false
	}
	s, err := new(edwards25519.Scalar).SetCanonicalBytes(signature[32:])
	if err != nil {
		return false
	}
	h, sum := sha512.New(), [sha512.Size]byte{}
	h.Write(signature[:32])
	h.Write(c.public[:])
	h.Write(message)
	k, err := new(edwards25519.Scalar).SetUniformBytes(h.Sum(sum[:0]))
	if err != nil {
		return false
	}
	return bytes.Equal(c.difference(s, k).Bytes(), signature[:32])
}

// difference is [s]B - [k]A.
func (c *comb) difference(s, k *edwards25519.Scalar) *edwards25519.Point {
	ofBase, ofKey := signedBytes(s.Bytes()), signedNibbles(k.Bytes())
	rows, sum := base(), edwards25519.NewIdentityPoint()
	for column := combColumns - 1; column >= 0; column-- {
		for range 4 { // the first time in vain
			sum.Double(sum)
		}
		for r := range combRows {
			add(sum, c.rows[r][:], -int(ofKey[r*combColumns+column]))
		}
		if column%2 != 0 {
			continue
		}
		for r := range combRows { // two nibbles make a byte
			add(sum, rows[r][:], int(ofBase[(r*combColumns+column)/2]))
		}
	}
	return sum
}

// add adds n times the point that the row is of.
func add(sum *edwards25519.Point, row []edwards25519.Point, n int) {
	switch {
	case n > 0:
		sum.Add(sum, &row[n-1])
	case n < 0:
		sum.Subtract(sum, &row[-n-1])
	}
}

// signedNibbles are a reduced scalar's digits to base 16, from -8 to 8; its
// highest bits are clear, so that the last digit takes the last carry.
func signedNibbles(scalar []byte) (digits [64]int8) {
	for i, b := range scalar {
		digits[2*i], digits[2*i+1] = int8(b&15), int8(b>>4)
	}
	for i := range digits[:63] {
		carry := (digits[i] + 8) >> 4
		digits[i] -= carry << 4
		digits[i+1] += carry
	}
	return digits
}

// signedBytes are its digits to base 256, from -128 to 128.
func signedBytes(scalar []byte) (digits [32]int16) {
	carry := int16(0)
	for i, b := range scalar {
		digit := int16(b) + carry
		carry = (digit + 128) >> 8
		digits[i] = digit - carry<<8
	}
	return digits
}
