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
		var all [3]*client
		for i, text := range []string{"PING\r\n", "PIN", "ECHO a\r\nECHO b\r\n"} {
			ours, theirs := net.Pipe()
			defer ours.Close()
			go io.Copy(io.Discard, ours)
			all[i] = newClient(s, theirs)
			go all[i].serve()
			io.WriteString(ours, text)
		}
		synctest.Wait()
		for i, c := range all {
			if c.busy == nil {
				t.Errorf("client %d has no buffers at once", i)
			}
		}
		time.Sleep(3 * busyTime)
		synctest.Wait()
		for i, c := range all {
			if (c.busy == nil) != (i != 1) {
				t.Errorf("client %d has buffers: %v", i, c.busy != nil)
			}
		}
	})
}
