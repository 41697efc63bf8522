// SPDX-License-Identifier: Apache-2.0

package respapi

import (
	"net"
	"syscall"
)

// net.Conn.Read tries to read before it waits. A client without pipelines has then sent nothing yet, so each command
// takes two system calls to read. According to epoll(7), a read that returns less than the buffer has emptied a stream:
// the next bytes cause an event. serveRaw therefore waits at once.

// provenBatches is how many batches a client must send one at a time before serveRaw waits without another read. The
// end of a stream can arrive with its last bytes, and then causes no event of its own. The next alarm finds it, but a
// client that sends a few commands and half-closes must not wait for an alarm.
const provenBatches = 16

// rawConn returns the raw connection of nc, or nil if nc is encrypted or not a socket.
func rawConn(nc net.Conn) syscall.RawConn {
	socket, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// serveRaw serves the client until the connection must end.
func (c *client) serveRaw(raw syscall.RawConn) {
	proven, ended := 0, false
	for {
		err := raw.Read(func(fd uintptr) (done bool) {
			for {
				space := c.space()
				if len(space) == 0 {
					ended = true
					return true
				}
				n, err := syscall.Read(int(fd), space)
				switch {
				case err == syscall.EINTR:
					continue
				case err == syscall.EAGAIN:
					proven++
					return false
				case err != nil || n <= 0:
					ended = true
					return true
				}
				if c.busy == nil {
					proven = 0
				}
				c.receive(n)
				if !c.respond() {
					ended = true
					return true
				}
				if proven >= provenBatches && n < len(space) {
					return false
				}
			}
		})
		if ended || !c.survive(err) {
			return
		}
	}
}
