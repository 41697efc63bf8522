// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/metehq/mete/internal/lane"
	"github.com/metehq/mete/store"
)

const slots = 1 << 14

// slotOf returns the slot of a key: the slot of its hash tag if it has one (Redis Cluster specification, hash
// tags).
func slotOf(prefix, key string) int {
	if tag, ok := hashTag(prefix); ok {
		return int(crc16(0, tag)) % slots
	}
	if tag, ok := hashTag(key); ok {
		return int(crc16(0, tag)) % slots
	}
	return int(crc16(crc16(0, prefix), key)) % slots
}

// hashTag returns the text between the first opening brace and the next closing brace.
func hashTag(key string) (string, bool) {
	_, rest, ok := strings.Cut(key, "{")
	if !ok {
		return "", false
	}
	tag, _, ok := strings.Cut(rest, "}")
	return tag, ok && tag != ""
}

var crcTable = sync.OnceValue(func() *[256]uint16 {
	var table [256]uint16
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return &table
})

// crc16 extends the checksum crc (CRC-16/XMODEM) by text.
func crc16(crc uint16, text string) uint16 {
	table := crcTable()
	for i := range len(text) {
		crc = crc<<8 ^ table[byte(crc>>8)^text[i]]
	}
	return crc
}

var tags = sync.OnceValue(func() *[slots]string {
	var tags [slots]string
	for i, found := uint64(0), 0; found < slots; i++ {
		tag := strconv.FormatUint(i, 36)
		if at := crc16(0, tag) % slots; tags[at] == "" {
			tags[at], found = tag, found+1
		}
	}
	return &tags
})

// laneFor returns the lane of charges in one slot, or nil if they are in several slots.
func (s *Store) laneFor(charges []store.Charge) *lane.Lane[*ask] {
	if !s.cluster {
		return s.lanes.At(0)
	}
	slot := s.slot(charges[0].Key)
	for i := range charges[1:] {
		if s.slot(charges[1+i].Key) != slot {
			return nil
		}
	}
	return s.lanes.At(slot)
}

func (s *Store) slot(key string) int { return slotOf(s.bucketPrefix, key) }

// A part is a set of charges that one script call takes, with their positions in the take.
type part struct {
	slot    int
	charges []store.Charge
	order   []int
}

type division bool

const (
	bySlot division = false
	byKey  division = true
)

// splitCharges splits charges into parts, in the order of their slots. Since all takes use the same order,
// concurrent takes do not block each other.
func (s *Store) splitCharges(charges []store.Charge, by division) []part {
	var parts []part
	for i, c := range charges {
		slot := 0
		if s.cluster {
			slot = s.slot(c.Key)
		}
		at := slices.IndexFunc(parts, func(p part) bool { return p.slot == slot })
		if by == byKey || at < 0 {
			at = len(parts)
			parts = append(parts, part{slot: slot})
		}
		parts[at].charges, parts[at].order = append(parts[at].charges, c), append(parts[at].order, i)
	}
	slices.SortStableFunc(parts, func(a, b part) int { return a.rank() - b.rank() })
	return parts
}

// rank orders parts by slot, with parts that contain a log last. A refund removes a log's oldest entries, so a
// log would not be restored if a later part denied the take.
func (p *part) rank() int {
	if slices.ContainsFunc(p.charges, func(c store.Charge) bool { return kindOf(&c.Limit) == logs }) {
		return slots + p.slot
	}
	return p.slot
}
