// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"sync/atomic"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// spills are the effects of a full store on the cells of a take.
type spills [bucket.SpillClosed + 1]bool

// spillCounts count takes by each effect.
type spillCounts [bucket.SpillClosed + 1]atomic.Uint64

func spillOf(o store.OnFull) bucket.Spill {
	if o == store.OnFullOpen {
		return bucket.SpillOpened
	}
	return bucket.SpillClosed
}

// spills returns the effects of a full store on tx.
func (tx *transaction) spills() (found spills) {
	for i := range tx.cells {
		found[tx.cells[i].spill] = true
	}
	return found
}

// countSpills counts the effects of a full store on a take unless it is a dry run.
func (s *Store) countSpills(found spills, dryRun bool) {
	for spill := bucket.SpillShared; spill <= bucket.SpillClosed && !dryRun; spill++ {
		if found[spill] {
			s.spilled[spill].Add(1)
		}
	}
}

// showSpill shows the effect of a full store in the snapshot of c. A closed bucket denies, even a cost of 0.
func (c *cell) showSpill(snap *bucket.Snapshot) {
	if snap.Spill = c.spill; c.spill == bucket.SpillClosed && snap.RetryAfter != bucket.Never {
		snap.Allowed, snap.RetryAfter = false, store.FullRetry
	}
}
