// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gateways

import (
	"runtime"
	"testing"
)

// The gateway keeps its connections to mete: a question costs no handshake.
func TestConnections(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		s, from := start(t, k, setup{}), newClients()
		const questions = 80
		for range questions {
			if a := s.send(t, from.another(), get); a.rule() != "address 99" {
				t.Fatalf("got %d with %v, want a decision", a.status, a.header)
			}
		}
		// One for each worker or thread, and a few for health checks.
		if got, most := s.asked.Connections(), 2*runtime.NumCPU()+10; got > most || got == 0 {
			t.Errorf("%d questions took %d connections, want at most %d", questions, got, most)
		}
	})
}
