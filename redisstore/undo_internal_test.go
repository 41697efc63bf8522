// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"testing"
	"time"
)

// TestPending_CountsWhatIsOnItsWay removes refunds from the queue, as an attempt does: they are still pending.
func TestPending_CountsWhatIsOnItsWay(t *testing.T) {
	later := time.Now().Add(time.Hour)
	u := undoer{queue: []undoing{{until: later}, {until: later}}}
	if got := len(u.takeDue()); got != 2 {
		t.Fatalf("%d are due, want 2", got)
	}
	if waiting, lost := u.pending(); waiting != 2 || lost != 0 {
		t.Errorf("%d are still to be given back, %d lost; want 2 and none", waiting, lost)
	}
}
