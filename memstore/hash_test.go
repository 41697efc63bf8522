// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"
)

// Similar keys, and keys that differ only in length, must not share a hash or half of one.
func TestHasher_NoCollisions(t *testing.T) {
	k := newHasher()
	seen0, seen1 := map[uint64]string{}, map[uint64]string{}
	add := func(key string) {
		h := k.hash(key)
		if other, ok := seen0[h.h0]; ok && other != key {
			t.Fatalf("%q and %q share the first half", key, other)
		}
		if other, ok := seen1[h.h1]; ok && other != key {
			t.Fatalf("%q and %q share the second half", key, other)
		}
		seen0[h.h0], seen1[h.h1] = key, key
	}
	for n := range 200 {
		add(strings.Repeat("\x00", n))
		add(strings.Repeat("a", n))
		for i := range n {
			add(strings.Repeat("a", i) + "b" + strings.Repeat("a", n-i-1))
		}
	}
	for i := range 200_000 {
		add(fmt.Sprintf("user:%011d", i))
		add(fmt.Sprintf("free:%d:0", i))
	}
}

// A changed bit of the key flips each bit of the hash with a probability of one half.
func TestHasher_Avalanche(t *testing.T) {
	for _, length := range []int{1, 3, 4, 7, 8, 15, 16, 17, 32, 33, 100} {
		flips, samples := 0, 0
		for sample := range 400 {
			k := newHasher()
			key := []byte(strings.Repeat(fmt.Sprintf("%d", sample*7919), 100)[:length])
			before := k.hash(string(key))
			for bit := range length * 8 {
				key[bit/8] ^= 1 << (bit % 8)
				after := k.hash(string(key))
				key[bit/8] ^= 1 << (bit % 8)
				flips += bits.OnesCount64(before.h0^after.h0) + bits.OnesCount64(before.h1^after.h1)
				samples++
			}
		}
		if mean := float64(flips) / float64(samples); mean < 63 || mean > 65 {
			t.Errorf("keys of %d bytes: a flipped bit changes %.2f of 128 bits, want about 64", length, mean)
		}
	}
}

// Hashes spread evenly over shards and homes, even for similar keys.
func TestHasher_Spreads(t *testing.T) {
	k := newHasher()
	const keys, cells = 256_000, 256
	var high0, high1, low0 [cells]int
	for i := range keys {
		h := k.hash(fmt.Sprintf("%08d", i*256))
		high0[h.h0>>56]++
		high1[h.h1>>56]++
		low0[h.h0&0xff]++
	}
	for name, counts := range map[string][cells]int{"high h0": high0, "high h1": high1, "low h0": low0} {
		var chi float64
		for _, n := range counts {
			d := float64(n) - keys/cells
			chi += d * d / (keys / cells)
		}
		// χ² with 255 degrees of freedom: mean 255, deviation 22.6.
		if chi > 255+8*22.6 {
			t.Errorf("%s: χ² is %.0f over %d cells, want about 255", name, chi, cells)
		}
	}
}

// Different processes have different secrets.
func TestHasher_IsKeyed(t *testing.T) {
	if a, b := newHasher(), newHasher(); a.hash("key") == b.hash("key") {
		t.Error("two hashers agree on a key")
	}
}
