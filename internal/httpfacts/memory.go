// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"net/netip"
	"sync"
)

// MaxBodyBytes bounds the bodies of requests that are in memory for rules, for all requests of a [Source] together. A request
// beyond it gets a 503.
//
// A client holds at most as much as it leaves free. One client thus gets half of the memory, and a second one half of the rest.
// Each further client gets a share, without a fixed number of clients.
const MaxBodyBytes = 256 << 20

// bodyMemory counts the bytes of bodies in memory, in all and by client.
type bodyMemory struct {
	mu      sync.Mutex // guards the fields below
	used    int64
	clients map[netip.Prefix]int64 // without clients that hold nothing
}

// heldBytes is the memory of one body.
type heldBytes struct {
	all    *bodyMemory
	client netip.Prefix // invalid if unknown: then it has no share
	n      int64        // guarded by all.mu
}

// clientOf returns the network that counts as one client: an IPv4 address, or a /64 of IPv6.
func clientOf(address string) netip.Prefix {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}
	}
	a = a.Unmap().WithZone("")
	length := a.BitLen()
	if a.Is6() {
		length = 64
	}
	p, _ := a.Prefix(length)
	return p
}

// grow adds n bytes, and reports whether there is room for them. shared means that only this client has no room.
func (h *heldBytes) grow(n int64) (ok, shared bool) {
	m := h.all
	m.mu.Lock()
	defer m.mu.Unlock()
	free := MaxBodyBytes - m.used - n
	if free < 0 {
		return false, false
	}
	if h.client.IsValid() {
		if m.clients[h.client]+n > free {
			return false, true
		}
		if m.clients == nil {
			m.clients = map[netip.Prefix]int64{}
		}
		m.clients[h.client] += n
	}
	m.used += n
	h.n += n
	return true, false
}

func (h *heldBytes) free() {
	m := h.all
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= h.n
	if h.client.IsValid() {
		if m.clients[h.client] -= h.n; m.clients[h.client] == 0 {
			delete(m.clients, h.client)
		}
	}
	h.n = 0
}
