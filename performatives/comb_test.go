package performatives

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"math/big"
	"slices"
	"strconv"
	"testing"

	"filippo.io/edwards25519"
)

// agrees holds a comb against the standard library, whose answer it returns.
func agrees(t *testing.T, public, message, signature []byte) bool {
	t.Helper()
	want, c := ed25519.Verify(public, message, signature), newComb(public)
	if got := c != nil && c.verify(message, signature); got != want {
		t.Fatalf("key %x, message %x, signature %x: the comb says %t, the standard library %t", public, message, signature, got, want)
	}
	return want
}

// FuzzComb: a comb takes exactly the signatures that crypto/ed25519 takes, of
// any key, and with any bit of a good one turned over.
func FuzzComb(f *testing.F) {
	f.Add([]byte("seed"), []byte("message"), uint16(0), []byte(nil), []byte(nil))
	f.Add([]byte("seed"), []byte(nil), uint16(512), make([]byte, 32), make([]byte, 64))
	f.Add([]byte(nil), make([]byte, 1000), uint16(600), bytes.Repeat([]byte{255}, 32), bytes.Repeat([]byte{255}, 64))
	f.Fuzz(func(t *testing.T, seed, message []byte, bit uint16, public, signature []byte) {
		hashed := sha256.Sum256(seed)
		private := ed25519.NewKeyFromSeed(hashed[:])
		own := private.Public().(ed25519.PublicKey) //nolint:forcetypeassert // its type says so
		good := ed25519.Sign(private, message)
		if !agrees(t, own, message, good) {
			t.Fatal("a good signature is refused")
		}
		good[bit/8%64] ^= 1 << (bit % 8)
		agrees(t, own, message, good)
		if len(public) == ed25519.PublicKeySize {
			agrees(t, public, message, signature)
			agrees(t, public, message, good)
		}
	})
}

// An encoded point is so many times the base point, plus one of small order.
type encoded struct {
	bytes []byte
	times *edwards25519.Scalar
}

// encodings are points of small, of mixed and of full order, also as they
// should not be written: with y from p on, or the sign of x = 0.
func encodings(t *testing.T, times *edwards25519.Scalar) (all []encoded) {
	t.Helper()
	zero := edwards25519.NewScalar()
	for _, small := range torsion(t) {
		all = append(all, encoded{small.Bytes(), zero}, encoded{new(edwards25519.Point).Add(small, new(edwards25519.Point).ScalarBaseMult(times)).Bytes(), times})
	}
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	for y := range int64(19) {
		for _, sign := range []byte{0, 0x80} {
			odd := new(big.Int).Add(p, big.NewInt(y)).FillBytes(make([]byte, 32))
			slices.Reverse(odd)
			odd[31] |= sign
			all = append(all, encoded{odd, zero}) // where it is a point of a large order, nothing is signed by it
		}
	}
	for _, y := range []*big.Int{big.NewInt(1), new(big.Int).Sub(p, big.NewInt(1))} {
		odd := y.FillBytes(make([]byte, 32))
		slices.Reverse(odd)
		odd[31] |= 0x80
		all = append(all, encoded{odd, zero})
	}
	return all
}

// torsion are the eight points whose order divides eight: what remains of any
// point that is multiplied with the order of the base point.
func torsion(t *testing.T) []*edwards25519.Point {
	t.Helper()
	one, err := edwards25519.NewScalar().SetCanonicalBytes(append([]byte{1}, make([]byte, 31)...))
	if err != nil {
		t.Fatal(err)
	}
	for y := range byte(255) {
		point, err := new(edwards25519.Point).SetBytes(append([]byte{y}, make([]byte, 31)...))
		if err != nil {
			continue
		}
		small := new(edwards25519.Point).ScalarMult(edwards25519.NewScalar().Negate(one), point)
		small.Add(small, point)
		all := []*edwards25519.Point{edwards25519.NewIdentityPoint()}
		for next := small; next.Equal(all[0]) == 0; next = new(edwards25519.Point).Add(next, small) {
			all = append(all, next)
		}
		if len(all) == 8 {
			return all
		}
	}
	t.Fatal("no point of order eight")
	return nil
}

// TestCombAtTheEdges: where libraries are known to differ (Chalkias, Garillot
// and Nikolaenko, Taming the many EdDSAs, §5), this one does as the standard
// library: keys and signatures of small and of mixed order, encodings that are
// not canonical, and an S that is not reduced.
func TestCombAtTheEdges(t *testing.T) {
	t.Parallel()
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	scalar := func(name string) *edwards25519.Scalar {
		sum := sha512.Sum512([]byte(name))
		s, err := edwards25519.NewScalar().SetUniformBytes(sum[:])
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	message, taken, refused := []byte("message"), 0, 0
	for _, key := range encodings(t, scalar("key")) {
		for _, r := range encodings(t, scalar("nonce")) {
			sum := sha512.Sum512(slices.Concat(r.bytes, key.bytes, message))
			k, err := edwards25519.NewScalar().SetUniformBytes(sum[:])
			if err != nil {
				t.Fatal(err)
			}
			s := edwards25519.NewScalar().MultiplyAdd(k, key.times, r.times).Bytes()
			if agrees(t, key.bytes, message, append(bytes.Clone(r.bytes), s...)) {
				taken++
			} else {
				refused++
			}
			more := slices.Clone(s)
			slices.Reverse(more)
			more = new(big.Int).Add(order, new(big.Int).SetBytes(more)).FillBytes(make([]byte, 32))
			slices.Reverse(more)
			if agrees(t, key.bytes, message, append(bytes.Clone(r.bytes), more...)) {
				t.Error("an S that is not reduced is taken")
			}
		}
	}
	if taken < 20 || refused < 20 {
		t.Errorf("%d were taken and %d refused; this shows nothing", taken, refused)
	}
}

// TestFamiliarKeys: a key that has signed often answers as on its first day, and
// no more than so many are remembered.
func TestFamiliarKeys(t *testing.T) {
	t.Parallel()
	alpha, data := testKey(t, "familiar"), []byte("data")
	good, err := SignBytes(alpha, data)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := hex.DecodeString(good[len(signaturePrefix):])
	if err != nil {
		t.Fatal(err)
	}
	var all familiarity
	for range 2 * familiarChecks {
		key := all.of(alpha.Key())
		if !key.verify(data, sig) || key.verify([]byte("date"), sig) {
			t.Fatal("it depends on how often it was asked")
		}
		if err := VerifyBytes(alpha.Key(), data, good); err != nil {
			t.Fatal(err)
		}
		if err := VerifyBytes(alpha.Key(), []byte("date"), good); !errors.Is(err, ErrSignature) {
			t.Fatal("a forged one is taken:", err)
		}
	}
	if all.of(alpha.Key()).comb.Load() == nil {
		t.Error("it is no familiar key yet")
	}
	for n := range 2*familiarKeys + 1 {
		all.of(testKey(t, strconv.Itoa(n)).Key())
	}
	if len(all.young)+len(all.old) > 2*familiarKeys {
		t.Errorf("%d keys are kept", len(all.young)+len(all.old))
	}
	if all.of(alpha.Key()).comb.Load() != nil {
		t.Error("a key that nobody asked for was not forgotten")
	}
}
