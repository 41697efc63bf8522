// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"hash/maphash"
	"net/netip"
	"sync"

	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
)

// MostHeld is how many requests are held at a time where nobody says another number:
// each is a goroutine, and most often a connection.
const MostHeld = 4096

// keyShare is the part of the places that the requests of one bucket may have: who
// floods one has not all of them.
const keyShare = 4

// places are for the requests that are held.
type places struct {
	most int
	seed maphash.Seed

	mu      sync.Mutex // guards the fields below
	taken   int
	byKey   map[uint64]int
	refused uint64
}

func newPlaces(most int) *places {
	if most == 0 {
		most = MostHeld
	}
	return &places{most: most, seed: maphash.MakeSeed(), byKey: map[uint64]int{}}
}

// take reports whether there is a place for a request with that key.
func (p *places) take(key uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.most || p.byKey[key] >= max(p.most/keyShare, 1) {
		p.refused++
		return false
	}
	p.taken++
	p.byKey[key]++
	return true
}

// give gives a place back.
func (p *places) give(key uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.byKey[key]--; p.byKey[key] == 0 {
		delete(p.byKey, key)
	}
}

// key tells apart whom requests that have to wait wait with: the bucket with the
// longest wait. Two of them may have one key, by a chance of 2^-64.
func (p *places) key(d *mete.Decision, req *mete.Request) uint64 {
	var h maphash.Hash
	h.SetSeed(p.seed)
	part := func(s string) {
		h.WriteString(s)
		h.WriteByte(0)
	}
	at := waitsFor(d)
	if at < 0 {
		return h.Sum64()
	}
	// Those that the request brought stand behind those of the policy.
	if own := at - (len(d.Limits()) - len(req.Charges)); own >= 0 && own < len(req.Charges) {
		part("")
		part(req.Charges[own].Key)
		return h.Sum64()
	}
	rule := d.Limits()[at].Rule
	part(rule.Name)
	for _, a := range rule.LimitKeys {
		value, _ := req.Attributes.Lookup(a)
		if a.Source == policy.SourceIP {
			value = network(value, a.Bits)
		}
		part(value)
	}
	return h.Sum64()
}

// waitsFor is the limit that an admitted request waits for longest, below 0 for none.
func waitsFor(d *mete.Decision) int {
	found := -1
	for i := range d.Limits() {
		s := &d.Limits()[i]
		switch {
		case s.Wait() <= 0 && s.UndelayedAfter(0) <= 0:
		case found < 0 || s.Wait() > d.Limits()[found].Wait():
			found = i
		}
	}
	return found
}

// network is what an address shares a bucket with.
func network(address string, bits int) string {
	addr, err := netip.ParseAddr(address)
	if err != nil || !addr.Is6() {
		return address
	}
	prefix, err := addr.WithZone("").Prefix(bits)
	if err != nil {
		return address
	}
	return prefix.String()
}
