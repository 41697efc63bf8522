// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Test servers listen on the ports from minPort to maxPort, which are below the ephemeral ports of common
// systems. Nodes of a Redis Cluster also listen at clusterBus above their port, out of that range.
const (
	minPort    = 10_000
	maxPort    = 20_000
	clusterBus = 10_000
)

// FreeAddr returns host:port of a free port on the loopback interface, for a program that cannot choose a
// port and report it. No other call returns the port before the test ends, in any process of this machine.
func FreeAddr(t testing.TB) string {
	t.Helper()
	addr, reservation, err := reserveAddr()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reservation.Close() })
	return addr
}

// reserveAddr finds a free TCP port and reserves it until the reservation is closed or the process ends. The
// reservation is a UDP socket, because the system gives each UDP port to one process only, and test servers use TCP.
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

func reserveAddrForGood() (string, error) {
	addr, reservation, err := reserveAddr()
	if err == nil {
		keepUntilExit(reservation)
	}
	return addr, err
}
