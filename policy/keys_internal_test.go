// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
	"testing"
)

// A text stays as it was made, though the memory of the key is used again and the text has
// lost its place to others.
func TestKeys_TextsStay(t *testing.T) {
	var k keys
	key, texts := []byte(nil), map[string]string{}
	for i := range 10 * knownKeys {
		want := fmt.Sprint("rule:ip=", i%(3*knownKeys), strings.Repeat("x", i%700))
		key = append(key[:0], want...)
		if texts[want] = k.intern(key); k.intern(key) != want {
			t.Fatalf("got %q, want %q", k.intern(key), want)
		}
		clear(key)
	}
	for want, got := range texts {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	key = append(key[:0], "rule:ip=192.0.2.1"...)
	if n := testing.AllocsPerRun(100, func() { k.intern(key) }); n > 0 {
		t.Errorf("a known text: %v allocations, want none", n)
	}
}
