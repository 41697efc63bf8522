// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package respapi

import (
	"net"
	"syscall"
)

func rawConn(net.Conn) syscall.RawConn { return nil }

func (c *client) serveRaw(syscall.RawConn) {}
