// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// A hash is 128 bits that represent a key.
type hash struct{ h0, h1 uint64 }

// withoutNumber returns the part of the hash that a slot keeps: see [slot].
func (h hash) withoutNumber() hash { return hash{h.h0, h.h1 &^ numberMask} }

// A hasher hashes keys under a secret of the process, so that clients cannot choose colliding keys. It uses the
// wyhash construction, like Go's maps without AES: it mixes 16 bytes at a time with the secret and folds a
// 64×64→128-bit product. Two lanes with independent secrets yield 128 bits at about 1.5 times the cost. A slot
// keeps 112 bits: among a billion keys, the probability of a collision is about 10⁻¹⁶.
type hasher struct {
	a, b, c, d uint64 // for h0 and h1
	e, f       uint64 // for the length
}

func newHasher() hasher {
	var seed [6 * 8]byte
	rand.Read(seed[:]) // never fails: see crypto/rand
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(seed[8*i:]) }
	return hasher{word(0), word(1), word(2), word(3), word(4), word(5)}
}

func (k *hasher) secret() (secret [secretBytes]byte) {
	for i, word := range []uint64{k.a, k.b, k.c, k.d, k.e, k.f} {
		binary.LittleEndian.PutUint64(secret[8*i:], word)
	}
	return secret
}

func (k *hasher) setSecret(secret [secretBytes]byte) {
	for i, word := range []*uint64{&k.a, &k.b, &k.c, &k.d, &k.e, &k.f} {
		*word = binary.LittleEndian.Uint64(secret[8*i:])
	}
}

// DeriveKey implements [store.KeyDeriver]. It derives the key from the store's secret, which [Store.Save]
// writes and [Restore] reads, so a key lives as long as the buckets.
func (s *Store) DeriveKey(_ context.Context, purpose string) ([sha256.Size]byte, error) {
	secret := s.hasher.secret()
	mac := hmac.New(sha256.New, secret[:])
	_, _ = mac.Write([]byte(purpose)) // never fails
	return [sha256.Size]byte(mac.Sum(nil)), nil
}

func (k *hasher) hash(key string) hash {
	n := uint64(len(key))
	s0, s1 := k.e, k.f
	for len(key) > 16 {
		x, y := load64(key), load64(key[8:])
		s0 = fold(x^k.a^s0, y^k.b^bits.RotateLeft64(s0, 32))
		s1 = fold(x^k.c^s1, y^k.d^bits.RotateLeft64(s1, 32))
		key = key[16:]
	}
	var x, y uint64
	if len(key) >= 8 {
		x, y = load64(key), load64(key[len(key)-8:])
	} else {
		x, y = loadShort(key)
	}
	s0, s1 = fold(x^k.a^s0, y^k.b^n), fold(x^k.c^s1, y^k.d^n)
	// A second round spreads bits that one multiplication leaves in place.
	return hash{fold(s0^k.c, n^k.e), fold(s1^k.a, n^k.f)}
}

func fold(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	return hi ^ lo
}

// loadShort returns fewer than 8 bytes as two words. Together with the length they determine the bytes.
func loadShort(s string) (x, y uint64) {
	switch n := len(s); {
	case n >= 4:
		return load32(s), load32(s[n-4:])
	case n > 0:
		return uint64(s[0])<<16 | uint64(s[n>>1])<<8 | uint64(s[n-1]), 0
	}
	return 0, 0
}

// load64 reads the first 8 bytes of s. The compiler turns it into one load.
func load64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func load32(s string) uint64 {
	_ = s[3]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
}
