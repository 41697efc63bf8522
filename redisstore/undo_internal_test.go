// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"testing"
	"time"
)

// TestPending_CountsWhatIsOnItsWay takes what is to be given back out of the queue, as
// an attempt does: it is still to be given back.
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
