// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/topkeys"
)

// addTop counts the keys that are denied most, and those near a limit, unless the settings
// have no counters.
func (a *assembly) addTop(b *buckets) error {
	if a.config.TopKeys == 0 {
		return nil
	}
	begin := time.Now()
	now := func() bucket.Instant { return bucket.At(begin.Add(time.Since(begin))) } // nobody sets this clock
	tracker, err := topkeys.New(topkeys.Config{Counters: a.config.TopKeys}, now())
	if err != nil {
		return err
	}
	a.onDenial = append(a.onDenial, func(_ context.Context, d *mete.Denial) { tracker.Denied(now(), d) })
	a.onNear = append(a.onNear, func(_ context.Context, d *mete.Denial) { tracker.Near(now(), d) })
	a.onPolicy = append(a.onPolicy, func(m *policy.Matcher) { // evict the rules that are gone
		names := map[string]bool{}
		for _, r := range m.Rules() {
			names[r.Name] = true
		}
		tracker.Retain(func(rule string) bool { return names[rule] })
	})
	a.metrics.Add(metrics.Top(tracker.Stats))
	a.top = httpapi.Top{Tracker: tracker, Now: now, MaskKey: b.keyFor("top keys")}
	return nil
}
