// SPDX-License-Identifier: Apache-2.0

package topkeys

import (
	"testing"
	"unsafe"

	"github.com/metehq/mete/bucket"
)

// A record that finds every lane taken is dropped at once, and counted where it would
// have been.
func TestRecord_DroppedIfAllLanesAreBusy(t *testing.T) {
	tr, err := New(Config{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	tr.Record(0, KindDenied, "r", "a", 0)
	s := &(*tr.rules.Load())["r"].kinds[KindDenied]
	for i := range s.lanes {
		if s.lanes[i].Load() == nil {
			s.open(tr, i, 0)
		}
		s.lanes[i].Load().mu.Lock()
		if i == Lanes-1 {
			break
		}
		tr.Record(0, KindDenied, "r", "b", 0) // into the next
	}
	tr.Record(0, KindDenied, "r", "c", 0)
	tr.Record(tr.length, KindDenied, "r", "c", 0)
	for i := range s.lanes {
		s.lanes[i].Load().mu.Unlock()
	}
	for _, tt := range []struct{ at, dropped int64 }{{0, 1}, {1, 2}, {2, 2}, {3, 1}, {4, 0}} {
		list := tr.Top(tr.length*bucket.Instant(tt.at), "r", KindDenied, 0)
		if int64(list.Dropped) != tt.dropped {
			t.Errorf("in part %d: %d dropped, want %d", tt.at, list.Dropped, tt.dropped)
		}
		if tt.at == 0 && (list.Total != Lanes || len(list.Keys) != 2) {
			t.Errorf("%d records of %d keys, want one in each lane, of 2", list.Total, len(list.Keys))
		}
	}
	if got := tr.Stats(); got.Recorded != Lanes || got.Dropped != 2 {
		t.Errorf("stats %+v, want %d records and 2 dropped", got, Lanes)
	}
}

func TestCounterBytes(t *testing.T) {
	if n := unsafe.Sizeof(counter{}) + unsafe.Sizeof(group{}) + 4*unsafe.Sizeof(table{}[0]); n > counterBytes {
		t.Errorf("a counter takes %d bytes, more than the %d that are counted", n, counterBytes)
	}
	if n := unsafe.Sizeof(lane{}); n > laneBytes {
		t.Errorf("a lane takes %d bytes, more than the %d that are counted", n, laneBytes)
	}
}
