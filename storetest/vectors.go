// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/bucket/testdata/vectors"
	"github.com/metehq/mete/store"
)

// checkVectors replays the shared vectors, each on its own store.
func checkVectors(t *testing.T, open Open) {
	cases, err := vectors.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if c.Core || c.Refused {
			continue // limiters reject these cases before the store
		}
		t.Run(c.File+"/"+c.Name, func(t *testing.T) {
			s := newSubject(t, open)
			for i, step := range c.Steps {
				s.clock.Set(step.At)
				s.vectorStep(i, fmt.Sprintf("step %d (%s at %d)", i, step.Op, step.At), step)
			}
			if t.Failed() {
				t.Log(c.Comment)
			}
		})
	}
}

// A takenBy identifies the bucket of a step that took from it.
type takenBy struct{ step, bucket int }

func (s *subject) vectorStep(at int, name string, step vectors.Step) {
	s.Helper()
	charges := make([]store.Charge, len(step.Charges))
	keys := make([]string, len(step.Charges))
	for i, c := range step.Charges {
		keys[i] = fmt.Sprintf("bucket%03d", c.Bucket)
		charges[i] = store.Charge{Key: keys[i], Limit: c.Limit, Cost: c.Cost, Penalty: c.Penalty, Await: c.Await}
	}
	switch step.Op {
	case vectors.Refund, vectors.Cancel:
		refunds := make([]mete.Refund, len(charges))
		for i, c := range step.Charges {
			refunds[i] = mete.Refund{Charge: charges[i], Taken: s.taken[takenBy{c.Of, c.Bucket}]}
		}
		if err := s.store.Refund(s.Context(), refunds, ""); err != nil {
			s.Errorf("%s: %v", name, err)
		}
	case vectors.Reset:
		if err := s.store.Reset(s.Context(), keys); err != nil {
			s.Errorf("%s: %v", name, err)
		}
	case vectors.Take, vectors.Peek, vectors.Force:
		mode := mete.Mode{MaxWait: step.MaxWait, DryRun: step.Op == vectors.Peek}
		snaps, allowed := s.take(mode, charges...)
		if allowed != step.Allowed {
			s.Errorf("%s: allowed %v, want %v", name, allowed, step.Allowed)
		}
		for i, snap := range snaps {
			if s.taken == nil {
				s.taken = map[takenBy]bucket.Taken{}
			}
			s.taken[takenBy{at, step.Charges[i].Bucket}] = snap.Taken()
			if got, want := vectorValues(snap), step.Charges[i].Want; got != want {
				s.Errorf("%s, bucket %d:\n got %+v\nwant %+v", name, step.Charges[i].Bucket, got, want)
			}
			c := &step.Charges[i]
			if left, level := snap.Penalty(); left != c.WantPenalty || level != c.WantLevel {
				s.Errorf("%s, bucket %d: penalty %v, level %d; want %v, level %d", name, c.Bucket, left, level, c.WantPenalty, c.WantLevel)
			}
		}
	default:
		s.Errorf("%s: unknown operation", name)
	}
}

func vectorValues(snap bucket.Snapshot) vectors.Want {
	return vectors.Want{
		Allowed:    snap.Allowed,
		Remaining:  snap.Remaining(),
		RetryAfter: snap.RetryAfter,
		FullAfter:  snap.FullAfter(),
		Wait:       snap.Wait(),
	}
}
