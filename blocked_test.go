// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
)

// RetryAfter of a block is its end, to the microsecond, and never on overflow.
func TestBlock_RetryAfter(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for end, want := range map[string]time.Duration{
		"2026-01-01T00:00:01.0000015Z": 1000001 * time.Microsecond,
		"2317-01-01T00:00:00Z":         2550840 * time.Hour,
		"2319-01-01T00:00:00Z":         bucket.Never,
		"9999-12-31T23:59:59Z":         bucket.Never,
	} {
		now := bucket.At(begin)
		clock := func() bucket.Instant { return now }
		store, err := memstore.New(memstore.Config{Now: clock})
		if err != nil {
			t.Fatal(err)
		}
		m := load(t, fmt.Sprintf(`{"rules": [{"name": "r", "limit_keys": ["k"], "algorithm_config": {"rps": 1, "burst": 1}}],
			"overrides": [{"id": "o", "action": "block", "match": {"k": "a"}, "reason": "r", "author": "a", "expires_at": %q}]}`, end))
		l, err := mete.New(store, m, mete.Config{Now: clock})
		if err != nil {
			t.Fatal(err)
		}
		ask := func() mete.Decision {
			d, err := l.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"k": "a"}})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		if d := ask(); d.Allowed || d.RetryAfter != want {
			t.Errorf("until %s: allowed %t, retry after %v, want %v", end, d.Allowed, d.RetryAfter, want)
		}
		if want == bucket.Never {
			continue
		}
		now = now.Add(want - time.Microsecond)
		if d := ask(); d.Allowed || d.RetryAfter != time.Microsecond {
			t.Errorf("until %s, a microsecond earlier: allowed %t, retry after %v", end, d.Allowed, d.RetryAfter)
		}
		now++
		if d := ask(); !d.Allowed {
			t.Errorf("until %s, then: %+v", end, d)
		}
	}
}
