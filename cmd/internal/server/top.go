// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/topkeys"
)

// A top finds the keys that are denied most. A nil one does nothing.
type top struct {
	tracker *topkeys.Tracker
	begin   time.Time
}

// newTop returns nil where the settings want none.
func newTop(counters int) (*top, error) {
	if counters == 0 {
		return nil, nil
	}
	t := &top{begin: time.Now()}
	var err error
	t.tracker, err = topkeys.New(topkeys.Config{Counters: counters}, t.now())
	return t, err
}

// now is a clock that nobody sets: it was right when the server began.
func (t *top) now() bucket.Instant { return bucket.At(t.begin.Add(time.Since(t.begin))) }

// denied is for the limiter's OnDenial.
func (t *top) denied() denialHook {
	if t == nil {
		return nil
	}
	return func(_ context.Context, d *mete.Denial) { t.tracker.Denied(t.now(), d) }
}

// near is for its OnNearLimit.
func (t *top) near() denialHook {
	if t == nil {
		return nil
	}
	return func(_ context.Context, d *mete.Denial) { t.tracker.Near(t.now(), d) }
}

// keep forgets the rules that are not in the policy any more.
func (t *top) keep(m *policy.Matcher) {
	if t == nil {
		return
	}
	names := map[string]bool{}
	for _, r := range m.Rules() {
		names[r.Name] = true
	}
	t.tracker.Retain(func(rule string) bool { return names[rule] })
}

// api is what the API answers from.
func (t *top) api(maskKey []byte) httpapi.Top {
	if t == nil {
		return httpapi.Top{}
	}
	return httpapi.Top{Tracker: t.tracker, Now: t.now, MaskKey: maskKey}
}
