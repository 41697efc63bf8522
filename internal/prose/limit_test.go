// SPDX-License-Identifier: Apache-2.0

package prose_test

import (
	"testing"

	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/policy"
)

func TestLimit(t *testing.T) {
	for _, tt := range []struct{ config, rate, want string }{
		{`"algorithm_config": {"rps": 10, "burst": 20}`, "10/s", "token bucket: up to 20 at once, then 10/s; full in 2s"},
		{`"algorithm_config": {"rate": "7/1m", "burst": 20, "leased": true}`, "7/m", "token bucket: up to 20 at once, then 7/m; full in 2m52s; leased"},
		{`"algorithm_config": {"rps": 100, "burst": 100, "shards": 4}`, "100/s", "token bucket: up to 100 at once, then 100/s; full in 1s; in 4 shards"},
		{`"algorithm_config": {"rate": "5/10s", "burst": 20, "refill": "interval", "anchor": "first"}`, "30/m",
			"token bucket: up to 20 at once; 5 come back every 10s, from the first request on; full in 40s"},
		{`"algorithm": "fixed_window", "algorithm_config": {"tokens": 100, "window": "1d", "start": "7h"}`, "100/d", "fixed window: 100 at 07:00 UTC, every 1d"},
		{`"algorithm": "fixed_window", "algorithm_config": {"tokens": 100, "window": "1h", "capacity": 150}`, "100/h",
			"fixed window: 100 every 1h from 00:00 UTC; unused ones are kept, up to 150"},
		{`"algorithm": "fixed_window", "algorithm_config": {"tokens": 10000, "window": "month", "timezone": "Europe/Berlin"}`, "10000/month",
			"fixed window: 10000 per month, from the 1st at 00:00 Europe/Berlin"},
		{`"algorithm": "fixed_window", "algorithm_config": {"tokens": 5, "window": "day", "start": "09:30", "timezone": "Asia/Kathmandu", "capacity": 8}`, "5/day",
			"fixed window: 5 per day, from 09:30 Asia/Kathmandu; unused ones are kept, up to 8"},
		{`"algorithm": "fixed_window", "algorithm_config": {"tokens": 5, "window": "week", "start_day": "sun", "timezone": "UTC"}`, "5/week",
			"fixed window: 5 per week, from Sunday at 00:00 UTC"},
		{`"algorithm": "fixed_window", "algorithm_config": {"tokens": 5, "window": "year", "start_day": "04-06", "timezone": "Europe/London"}`, "5/year",
			"fixed window: 5 per year, from April 6 at 00:00 Europe/London"},
		{`"algorithm": "cost_based", "algorithm_config": {"budget": 1000, "period": "month", "start_day": 23, "timezone": "UTC"}`, "1000/month",
			"budget: up to 1000 at once; 1000 come back per month, from the 23rd at 00:00 UTC; full in 30d10h29m6s"},
		{`"algorithm": "sliding_window", "algorithm_config": {"tokens": 5, "window": "1m"}`, "5/m", "sliding window: 5 in any 1m, about"},
		{`"algorithm": "sliding_log", "algorithm_config": {"tokens": 5, "window": "1m"}`, "5/m", "sliding log: 5 in any 1m, exactly"},
		{`"algorithm": "leaky_bucket", "algorithm_config": {"rps": 2, "queue": 10}`, "2/s", "leaky bucket: 1 at once, then 2/s; 10 may wait, for up to 5s"},
		{`"algorithm": "cost_based", "algorithm_config": {"budget": 1000, "period": "1w"}`, "1000/w",
			"budget: up to 1000 at once; 1000 come back on Monday at 00:00 UTC, every 7d; full in 7d"},
	} {
		m, err := policy.Load([]byte(`{"name": "r", "limit_keys": ["ip:address"], `+tt.config+`}`), policy.Options{})
		if err != nil {
			t.Errorf("%s: %v", tt.config, err)
			continue
		}
		l := &m.Rules()[0].Limits[0]
		if got := prose.Limit(l); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.config, got, tt.want)
		}
		if got := prose.Rate(l.Bucket); got != tt.rate {
			t.Errorf("%s: rate %s, want %s", tt.config, got, tt.rate)
		}
	}
}

func TestAlgorithm(t *testing.T) {
	for _, a := range policy.Algorithms() {
		if got := prose.Algorithm(&policy.Limit{Reason: a.Reason}); got != a.Name {
			t.Errorf("limit with reason %s: got algorithm %q, want %q", a.Reason, got, a.Name)
		}
	}
}
