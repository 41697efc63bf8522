// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/storetest"
)

// Any file, even with a valid checksum, is rejected or yields a valid store that can be saved and restored.
func FuzzRestore(f *testing.F) {
	for _, at := range []bucket.Instant{0, 20_000, 1_700_000_000_000_000} {
		clock := new(storetest.Clock)
		clock.Set(at)
		s, err := memstore.New(memstore.Config{MaxKeys: 8, Now: clock.Now})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(fileOf(f, s), int64(at))
		head := len(fileOf(f, s)) - len("t\x02\x00\x00")
		for i, l := range everyAlgorithm(f) {
			key := fmt.Sprint("k", i)
			for range 3 {
				take(f, s, key, l.ForKey(key), bucket.Token)
				clock.Advance(500)
			}
			if i%2 == 1 { // an account for another version, or two
				take(f, s, key, mustLimit(f, 10*bucket.Token, bucket.Token), bucket.Token)
				take(f, s, key, mustLimit(f, 9*bucket.Token, bucket.Tokens(1+i)), bucket.Token)
			}
			file := fileOf(f, s)
			f.Add(file, int64(at+9000)<<4)
			_, n := binary.Uvarint(file[head+1:])
			f.Add(file[head+1+n:len(file)-len("t\x02\x00\x00")], int64(at+9000)<<4)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, at int64) {
		path := filepath.Join(t.TempDir(), "buckets")
		for _, file := range [][]byte{data, summed(data), summed(framed(data, at))} {
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			c := memstore.Config{MaxKeys: 8, Now: func() bucket.Instant { return bucket.Instant(at >> 4) }}
			s, err := memstore.Restore(path, c)
			if err != nil {
				continue
			}
			for i, l := range everyAlgorithm(t) {
				take(t, s, fmt.Sprint("new", i), l, bucket.Token)
			}
			if err := s.Save(path); err != nil {
				t.Fatal(err)
			}
			again, err := memstore.Restore(path, c)
			if err != nil {
				t.Fatalf("%v, when it was saved again", err)
			}
			memstore.CheckInvariants(t, s)
			memstore.CheckInvariants(t, again)
		}
	})
}

// summed returns data and its checksum.
func summed(data []byte) []byte {
	sum := sha256.Sum256(data)
	return append(data[:len(data):len(data)], sum[:]...)
}

// framed returns the file of Save with these states.
func framed(states []byte, at int64) []byte {
	saved := binary.AppendVarint(nil, at>>4)
	file := append([]byte("mete memstore 3\n"), 'h', byte(len(saved)+48))
	file = append(append(file, saved...), make([]byte, 48)...)
	file = binary.AppendUvarint(append(file, 's'), uint64(len(states)))
	return append(append(file, states...), "t\x02\x00\x00"...)
}

// fileOf returns the file of Save without the checksum.
func fileOf(tb testing.TB, s *memstore.Store) []byte {
	tb.Helper()
	data, err := os.ReadFile(saved(tb, s))
	if err != nil {
		tb.Fatal(err)
	}
	return data[:len(data)-sha256.Size]
}
