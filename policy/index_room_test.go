// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/metehq/mete/internal/testseed"
)

// clauses returns clauses on three attributes. The last one is an address.
func clauses(r *rand.Rand) (list []clause) {
	for slot := range 3 {
		if r.IntN(3) == 0 {
			continue
		}
		p := pattern{negate: r.IntN(5) == 0}
		for range 1 + r.IntN(12) {
			word := fmt.Sprintf("%b", r.IntN(64))
			switch {
			case slot == 2:
				bits := r.IntN(33)
				addr, _ := netip.AddrFrom4([4]byte{10, byte(r.IntN(4)), byte(r.IntN(4)), byte(r.IntN(4))}).Prefix(bits)
				p.networks = append(p.networks, addr)
			case r.IntN(3) == 0:
				p.prefixes = append(p.prefixes, word)
			default:
				p.exact = append(p.exact, word)
			}
		}
		p.finish()
		list = append(list, clause{slot, p})
	}
	return list
}

// An index without space to divide, or with its search used up, still finds everything. It is the same every
// time.
func TestIndex_WithoutRoom(t *testing.T) {
	m := &Matcher{}
	for _, name := range []string{"a", "b", "ip:address"} {
		a, err := ParseAttribute(name)
		if err != nil {
			t.Fatal(err)
		}
		m.attributes = append(m.attributes, a)
	}
	for seed := range uint64(30) {
		r := rand.New(testseed.PCG(seed, 7))
		var items []item
		for i := range 200 {
			items = append(items, item{int32(i), clauses(r)})
		}
		for _, room := range []indexer{{}, {places: 700, looks: 1 << 20}, {places: 5000, looks: 9000}, {places: 1 << 20, looks: 4000}, {places: 1 << 20, looks: 1 << 20}} {
			room.attributes = m.attributes
			x, again := room, room
			index, second := x.newBranch(items), again.newBranch(items)
			if x.places < 0 || x.looks < 0 || x.places != again.places || x.looks != again.looks {
				t.Fatalf("seed %d: of %+v %d places and %d looks are left, and then %d and %d", seed, room, x.places, x.looks, again.places, again.looks)
			}
			for range 50 {
				attrs := Map{"a": fmt.Sprintf("%b", r.IntN(64)), "b": fmt.Sprintf("%b", r.IntN(64)), "ip:address": fmt.Sprintf("10.%d.%d.%d", r.IntN(4), r.IntN(4), r.IntN(4))}
				s := new(scratch)
				m.begin(s, attrs, 0, 0)
				found := index.find(nil, m, s)
				for _, it := range items {
					if m.holdAll(s, it.clauses) && !slices.Contains(found, it.number) {
						t.Fatalf("seed %d, %+v: %v: item %d holds and is not found", seed, room, attrs, it.number)
					}
				}
				if then := second.find(nil, m, s); !slices.Equal(found, then) {
					t.Fatalf("seed %d, %+v: %v: found %d, by the second index %d", seed, room, attrs, found, then)
				}
			}
		}
	}
}
