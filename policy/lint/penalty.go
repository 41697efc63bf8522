// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/internal/inspect"
)

const longPenalty = 24 * time.Hour

// checkPenalties finds penalties that end before the limit has tokens, and penalties that lock clients out for days.
func (l *linter) checkPenalties() {
	for _, d := range l.all {
		for i := range d.view.Limits {
			limit, at := d.limit(i)
			p := limit.Penalty
			if p == nil {
				continue
			}
			if wait := tokenWait(limit); p.First() < wait {
				l.warn(at.Fields, "short-penalty", fmt.Sprintf("the penalty of limit %q can last %s, but a client can wait %s for a token",
					limit.Name, inspect.FormatDuration(p.First()), inspect.FormatDuration(wait)), "use a penalty that is longer than that wait")
			}
			if limit.Bucket.Capacity() == 0 {
				l.warn(at.Fields, "idle-field", fmt.Sprintf("the penalty of limit %q never starts: with burst: 0, only requests with max_wait are admitted, and their denials start none", limit.Name), "remove penalty")
			}
			if p.Most() > longPenalty {
				remedy := "use a shorter penalty, which grows"
				if d.Rule.IsGuard() {
					remedy = "set auto_reset_after_minutes, or reset the bucket of an open breaker"
				}
				l.warn(at.Fields, "long-penalty", fmt.Sprintf("the penalty of limit %q can last %s", limit.Name, inspect.FormatDuration(p.Most())), remedy)
			}
		}
	}
}

// tokenWait returns the longest time in which an empty bucket of l gets one token. A sliding limit gets it within its
// window.
func tokenWait(l *policy.Limit) time.Duration {
	if l.Bucket.Algorithm() == bucket.AlgorithmContinuous {
		return l.Bucket.TimeFor(bucket.Token)
	}
	_, p := l.Bucket.Refill()
	return time.Duration(p) * time.Microsecond
}
