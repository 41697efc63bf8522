// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// Stage returns what becomes of an admitted request because so little is left
// under the limit: nil for nothing. Its Delay is in [Decision.Wait] already.
func (s *Status) Stage() *policy.Stage {
	if !s.Allowed || len(s.Limit.Stages) == 0 {
		return nil
	}
	used, capacity := s.Snapshot.Limit.Capacity()-s.Room(), s.Snapshot.Limit.Capacity()
	if whole := s.Limit.Bucket.Capacity(); whole != capacity { // the bucket has a share of the limit
		used = proportion(used, whole, capacity, false)
	}
	return s.Limit.Stage(used)
}

// UndelayedAfter is how long it takes, if the request gives back what it took and
// nobody else takes, until the same request is delayed by no stage for longer than
// longest. It is 0 where it is not now, and [bucket.Never] where it always is.
func (s *Status) UndelayedAfter(longest time.Duration) time.Duration {
	stage := s.Stage()
	if stage == nil || stage.Delay <= longest {
		return 0
	}
	at := stage.At
	for i := range s.Limit.Stages {
		if earlier := &s.Limit.Stages[i]; earlier.Delay > longest {
			at = earlier.At
			break
		}
	}
	capacity := s.Snapshot.Limit.Capacity()
	if whole := s.Limit.Bucket.Capacity(); whole != capacity {
		at = proportion(at, capacity, whole, false)
	}
	if s.Cost >= at {
		return bucket.Never
	}
	return s.RoomAfter(capacity - at + 1)
}

// delay is how long the stages of the limit hold the request that s admits, or would
// hold it.
func (s *Status) delay(dryRun bool) time.Duration {
	if len(s.Limit.Stages) == 0 {
		return 0
	}
	after := *s
	if dryRun {
		after.Snapshot = s.With()
	}
	if stage := after.Stage(); stage != nil {
		return stage.Delay
	}
	return 0
}
