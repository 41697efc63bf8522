// SPDX-License-Identifier: Apache-2.0

package redisstore

import "testing"

// TestSlot has the examples of the Redis Cluster specification, and the check value of the CRC.
func TestSlot(t *testing.T) {
	if got := crc16(0, "123456789"); got != 0x31c3 {
		t.Errorf("crc16 of 123456789 is %#x, want 0x31c3", got)
	}
	for _, c := range []struct{ key, slotted string }{
		{"{user1000}.following", "user1000"},
		{"{user1000}.followers", "user1000"},
		{"foo{}{bar}", "foo{}{bar}"},
		{"foo{{bar}}zap", "{bar"},
		{"foo{bar}{zap}", "bar"},
		{"foo{bar", "foo{bar"},
		{"plain", "plain"},
	} {
		want := int(crc16(0, c.slotted)) % slots
		if _, tagged := hashTag(c.key); tagged {
			if got := slotOf("p:", c.key); got != want {
				t.Errorf("slot of %q is %d, want that of %q, %d", c.key, got, c.slotted, want)
			}
		} else if got := slotOf("p:", c.key); got != int(crc16(0, "p:"+c.slotted))%slots {
			t.Errorf("slot of %q is %d, want that of the whole key", c.key, got)
		}
		if got, tag := slotOf("{all}:", c.key), int(crc16(0, "all"))%slots; got != tag {
			t.Errorf("slot of %q behind {all}: is %d, want %d: the first tag counts", c.key, got, tag)
		}
	}
}

func TestTags_AreOfTheirSlots(t *testing.T) {
	for slot, tag := range tags() {
		if got := slotOf("", "{"+tag+"}x"); got != slot {
			t.Fatalf("tag %q of slot %d is in slot %d", tag, slot, got)
		}
	}
}
