// SPDX-License-Identifier: Apache-2.0

package proctest_test

import (
	"net"
	"testing"

	"github.com/metehq/mete/internal/proctest"
)

// FreeAddr reserves: none of 500 ports is given out twice, although no
// server listens on them.
func TestFreeAddr(t *testing.T) {
	given := make(map[string]bool)
	for range 500 {
		addr := proctest.FreeAddr(t)
		if given[addr] {
			t.Fatalf("%s was given out twice", addr)
		}
		given[addr] = true
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatalf("a free port: %v", err)
		}
		l.Close()
	}
}
