// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"github.com/metehq/mete/policy"
)

func TestLimit_ExpectedResponse(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [
		{"name": "failures", "limit_keys": [], "charge_on": {"status": ["5xx"]}, "rate": "1/1s", "burst": 1},
		{"name": "all", "group": "all", "limit_keys": [], "rate": "1/1s", "burst": 1}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, other := &m.Rules()[0].Limits[0], &m.Rules()[1].Limits[0]
	want := func(d time.Duration) {
		t.Helper()
		if got := l.ExpectedResponse(); got != d {
			t.Errorf("%v, want %v", got, d)
		}
	}
	want(time.Second)
	l.ObserveResponse(50 * time.Millisecond)
	want(200 * time.Millisecond)
	l.ObserveResponse(130 * time.Millisecond) // an eighth of the difference counts
	want(240 * time.Millisecond)
	for range 100 {
		l.ObserveResponse(-time.Second)
	}
	want(10 * time.Millisecond)
	for range 100 {
		l.ObserveResponse(24 * time.Hour)
	}
	want(10 * time.Minute)
	other.ObserveResponse(time.Minute)
	if got := other.ExpectedResponse(); got != time.Second {
		t.Errorf("%v for a limit that awaits no response, want a second", got)
	}
}
