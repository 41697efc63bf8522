// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"sync"
	"testing"
)

// A remembered hash is equal to a new one, also beyond the bound of the memory and while
// several goroutines need hashes.
func TestKeyer_RemembersHashes(t *testing.T) {
	k := newKeyer([]byte("key"))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 3 * maxHashes {
				value := fmt.Sprint("value ", i*7%(2*maxHashes))
				want := string(k.makeHash(nil, value))
				if got := string(k.appendHash([]byte("x"), value)); got != "x"+want {
					t.Errorf("%q: got %q, want %q behind x", value, got, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkKeyer(b *testing.B) {
	k := newKeyer([]byte("key"))
	var space []byte
	for name, hash := range map[string]func([]byte, string) []byte{"made": k.makeHash, "remembered": k.appendHash} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				space = hash(space[:0], "sk_live_0123456789abcdef")
			}
		})
	}
}
