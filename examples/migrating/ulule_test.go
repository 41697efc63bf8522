// SPDX-License-Identifier: Apache-2.0

package migrating_test

import (
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
)

// Denied requests do not prolong the denial of a client.
func TestUlule_DenialIsFree(t *testing.T) {
	steps := []step{{0, 10, true, 0}}
	for range 1000 {
		steps = append(steps, step{0, 1, false, 6 * time.Second})
	}
	play(t, tokenBucket(t, 10, "10/1m"), append(steps, step{6 * time.Second, 1, true, 0})...)
}

// All addresses of an IPv6 /64 have one bucket, not 2^64 of them.
func TestUlule_NetworkIsOneClient(t *testing.T) {
	matcher, err := policy.Load([]byte(`{"name": "client", "limit_keys": ["ip:address"], "rate": "1/1h", "burst": 1}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := newChargeLimiter(t, newClock())
	if err := l.SetPolicy(matcher); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		address string
		want    bool
	}{
		{"2001:db8:0:1::1", true},
		{"2001:db8:0:1::2", false}, // the same /64
		{"2001:db8:0:2::1", true},
		{"192.0.2.1", true},
		{"192.0.2.2", true},
		{"::ffff:192.0.2.2", false}, // the same address
	} {
		d, err := l.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"ip:address": tt.address}})
		if err != nil || d.Allowed != tt.want {
			t.Errorf("take from %s: allowed %v, error %v; want %v", tt.address, d.Allowed, err, tt.want)
		}
	}
}
