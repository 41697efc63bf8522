// SPDX-License-Identifier: Apache-2.0

package respapi

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// An idle client holds no buffers. A part of a command keeps them.
func TestClient_IdleBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := benchServer(t)
		for text, kept := range map[string]bool{"PING\r\n": false, "PIN": true, "ECHO a\r\nECHO b\r\n": false} {
			for _, pause := range []time.Duration{0, 3 * busyTime} {
				ours, theirs := net.Pipe()
				go io.Copy(io.Discard, ours)
				c, done := newClient(s, theirs), make(chan struct{})
				go func() { c.serve(); close(done) }()
				io.WriteString(ours, text)
				time.Sleep(pause)
				ours.Close()
				<-done
				if has := c.busy != nil; has != (kept || pause == 0) {
					t.Errorf("%q: has buffers after %v: %v", text, pause, has)
				}
			}
		}
	})
}
