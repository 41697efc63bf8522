// SPDX-License-Identifier: Apache-2.0

package queuewait

import (
	"hash/maphash"
	"net/netip"
	"sync"

	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
)

// DefaultMaxWaiting is the default maximum number of waiting requests. Each uses a goroutine and usually a connection.
const DefaultMaxWaiting = 4096

// keyShare limits one bucket to a quarter of the slots, so that a flood of requests for it cannot use them all.
const keyShare = 4

type slots struct {
	most int
	seed maphash.Seed

	mu      sync.Mutex // guards the fields below
	taken   int
	byKey   map[uint64]int
	refused uint64
}

func newSlots(most int) *slots {
	if most == 0 {
		most = DefaultMaxWaiting
	}
	return &slots{most: most, seed: maphash.MakeSeed(), byKey: map[uint64]int{}}
}

func (p *slots) take(key uint64) bool {
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

func (p *slots) give(key uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.byKey[key]--; p.byKey[key] == 0 {
		delete(p.byKey, key)
	}
}

// key identifies the bucket with the longest wait. Two buckets collide with a probability of 2^-64.
func (p *slots) key(d *mete.Decision, req *mete.Request) uint64 {
	var h maphash.Hash
	h.SetSeed(p.seed)
	part := func(s string) {
		h.WriteString(s)
		h.WriteByte(0)
	}
	at := longestWait(d)
	if at < 0 {
		return h.Sum64()
	}
	// The limits of the request follow the limits of the policy.
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

// longestWait returns the index of the limit with the longest wait, or a negative number if there is none.
func longestWait(d *mete.Decision) int {
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
