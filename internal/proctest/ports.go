// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Servers of tests listen on the ports from minPort up to maxPort. They lie below
// the ports that systems give to outgoing connections and to listeners on port 0.
// The nodes of a Redis Cluster also listen clusterBus higher, where no other server
// of a test does.
const (
	minPort    = 10_000
	maxPort    = 20_000
	clusterBus = 10_000
)

// FreeAddr returns host:port of a port on the loopback interface that is free. It
// is for a program that cannot choose a port itself and say which. No other call
// returns the port before the test ends, in any process of this machine.
func FreeAddr(t testing.TB) string {
	t.Helper()
	addr, reservation, err := reserveAddr()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reservation.Close() })
	return addr
}

// reserveAddr finds a free TCP port and reserves it until the reservation is closed
// or the process ends. The reservation is a UDP socket: the system gives each UDP
// port to one process, and the servers of tests use TCP.
func reserveAddr() (addr string, reservation net.PacketConn, err error) {
	for range 100 {
		port := minPort + rand.IntN(maxPort-minPort)
		reservation, err = net.ListenPacket("udp", loopback(port+clusterBus))
		if err != nil {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", loopback(port)); err == nil {
			return loopback(port), reservation, l.Close()
		}
		reservation.Close()
	}
	return "", nil, fmt.Errorf("find a free port: %w", err)
}

// reserveAddrForGood reserves an address until the process ends.
func reserveAddrForGood() (string, error) {
	addr, reservation, err := reserveAddr()
	if err == nil {
		keepUntilExit(reservation)
	}
	return addr, err
}
