// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
)

// TestPacket_IsWhatPgxReads decodes packets with pgx.
func TestPacket_IsWhatPgxReads(t *testing.T) {
	var p packet
	for range 2 { // a packet is reused
		p.reset()
		p.addInt(-1)
		p.addInt(math.MaxInt64)
		p.addBool(true)
		p.addBool(false)
		p.addBytes("p\x00", "k\xff")
		p.addInts([]int64{1, -2, math.MinInt64})
		p.addInts(nil)
		p.beginArray(pgtype.ByteaOID, 2)
		p.appendText("p:", "\x00")
		p.appendText("", "")
		p.beginArray(pgtype.TextOID, 1)
		p.appendText("", "ü")
		values := p.end()
		if len(values) != 9 {
			t.Fatalf("%d values, want 9", len(values))
		}
		decodes(t, values[0], pgtype.Int8OID, int64(-1))
		decodes(t, values[1], pgtype.Int8OID, int64(math.MaxInt64))
		decodes(t, values[2], pgtype.BoolOID, true)
		decodes(t, values[3], pgtype.BoolOID, false)
		if got, want := string(values[4]), "p\x00k\xff"; got != want {
			t.Errorf("key: %q, want %q", got, want)
		}
		decodesAll(t, values[5], pgtype.Int8ArrayOID, []int64{1, -2, math.MinInt64}, func(x, y int64) bool { return x == y })
		decodesAll(t, values[6], pgtype.Int8ArrayOID, []int64{}, func(x, y int64) bool { return x == y })
		decodesAll(t, values[7], pgtype.ByteaArrayOID, [][]byte{[]byte("p:\x00"), {}}, bytes.Equal)
		decodesAll(t, values[8], pgtype.TextArrayOID, []string{"ü"}, func(x, y string) bool { return x == y })
	}
}

func decodes[T comparable](t *testing.T, value []byte, oid uint32, want T) {
	t.Helper()
	var got T
	if err := pgtype.NewMap().Scan(oid, pgtype.BinaryFormatCode, value, &got); err != nil || got != want {
		t.Errorf("%x: %v, %v; want %v", value, got, err, want)
	}
}

func decodesAll[T any](t *testing.T, value []byte, oid uint32, want []T, equal func(x, y T) bool) {
	t.Helper()
	var got []T
	if err := pgtype.NewMap().Scan(oid, pgtype.BinaryFormatCode, value, &got); err != nil || !slices.EqualFunc(got, want, equal) {
		t.Errorf("%x: %v, %v; want %v", value, got, err, want)
	}
}

// TestElements_ReadsWhatPgxWrites is the reverse test.
func TestElements_ReadsWhatPgxWrites(t *testing.T) {
	for _, want := range [][]int64{{}, {7}, {1, -1, math.MaxInt64}} {
		value, err := pgtype.NewMap().Encode(pgtype.Int8ArrayOID, pgtype.BinaryFormatCode, want, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		if !readElements(value, func(e []byte) {
			v, ok := readInt(e)
			if !ok {
				t.Errorf("%x is no number", e)
			}
			got = append(got, v)
		}) || !slices.Equal(got, want) {
			t.Errorf("%x: %v, want %v", value, got, want)
		}
	}
}

// TestElements_OfSomethingElse proves that invalid arrays do not panic.
func TestElements_OfSomethingElse(t *testing.T) {
	var p packet
	p.addInts([]int64{1, 2})
	good := slices.Clone(p.end()[0])
	for n := range len(good) {
		if readElements(good[:n], func([]byte) {}) {
			t.Errorf("%d of %d bytes were read as an array", n, len(good))
		}
	}
	for name, value := range map[string][]byte{
		"two dimensions": changed(good, 3, 2),
		"a null":         append(slices.Clone(good[:20]), 0xff, 0xff, 0xff, 0xff),
		"a long element": changed(good, 20, 0x7f),
		"many elements":  changed(good, 12, 0xff),
	} {
		if readElements(value, func([]byte) {}) {
			t.Errorf("%s: %x was read as an array", name, value)
		}
	}
	if _, ok := readInt([]byte{1, 2, 3}); ok {
		t.Error("three bytes were read as a number")
	}
}

func changed(value []byte, at int, b byte) []byte {
	value = slices.Clone(value)
	value[at] = b
	return value
}

func FuzzElements(f *testing.F) {
	var p packet
	p.addInts([]int64{1, 2})
	f.Add(p.end()[0])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, value []byte) {
		size := 0
		readElements(value, func(e []byte) { size += len(e) })
		if size > len(value) {
			t.Errorf("%x: its elements have %d bytes", value, size)
		}
	})
}
