// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"strings"
	"testing"
)

// Requests that have not ended use memory, so their number has a bound.
func TestOngoings_Bound(t *testing.T) {
	open := make(ongoings, maxOngoing-1)
	for i := range open {
		open[i] = new(ongoing)
	}
	if err := open.add(&ongoing{end: 9}, 1); err != nil || len(open) != maxOngoing {
		t.Fatalf("the last one: %d requests, %v", len(open), err)
	}
	if err := open.add(&ongoing{end: 9}, 1); err == nil || !strings.Contains(err.Error(), "more than 1048576 requests") || len(open) != maxOngoing {
		t.Errorf("one more: %d requests, %v", len(open), err)
	}
}
