// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// A fast limit of failures admits all successes: 1000 requests per second last 50 ms each, and 100 failures per second are
// allowed. Then all requests fail, and the limit admits at most its burst and its rate.
func TestFinish_FastLimit(t *testing.T) {
	const rules = `{"rules": [{"name": "failures", "limit_keys": [], "charge_on": {"status": ["5xx"]}, "rate": "100/1s", "burst": 100}]}`
	m, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := bucket.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	clock := func() bucket.Instant { return now }
	s, err := memstore.New(memstore.Config{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	l, err := mete.New(s, m, mete.Config{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	type request struct {
		end bucket.Instant
		*mete.Reservation
	}
	run := func(status int) (admitted, denied int) {
		var open []request
		for end := now.Add(3 * time.Second); now < end; now = now.Add(time.Millisecond) {
			for len(open) > 0 && open[0].end <= now {
				if err := open[0].Finish(t.Context(), policy.Response{Status: status, Ended: true}); err != nil {
					t.Fatal(err)
				}
				open = open[1:]
			}
			r, err := l.Reserve(t.Context(), mete.Request{})
			if err != nil {
				t.Fatal(err)
			}
			if !r.Allowed {
				denied++
				continue
			}
			admitted++
			open = append(open, request{now.Add(50 * time.Millisecond), r})
		}
		return admitted, denied
	}
	if _, denied := run(200); denied > 0 {
		t.Errorf("%d of 3000 successes were denied, want none", denied)
	}
	if admitted, _ := run(500); admitted > 400 {
		t.Errorf("%d failures in 3 s, want at most 400", admitted)
	}
}

// Only the limit that the response determines awaits it, also if the memory of an earlier request is used again.
func TestReserve_AwaitsOfItsOwnLimits(t *testing.T) {
	r, s := newRecorder(t, `{"name": "failures", "match": {"path": "/a"}, "limit_keys": [], "charge_on": {"status": [401]}, "rate": "1/1s", "burst": 100},
		{"name": "plain", "match": {"path": "/b"}, "limit_keys": [], "rate": "1/1s", "burst": 100},
		{"name": "window", "match": {"path": "/c"}, "limit_keys": [], "charge_on": {"status": [401]}, "algorithm": "fixed_window", "tokens": 9, "window": "1d"}`)
	reserve := func(path string) {
		reserved, err := r.Reserve(t.Context(), mete.Request{Attributes: policy.Map{"path": path}})
		if err != nil {
			t.Fatal(err)
		}
		if err := reserved.Finish(t.Context(), policy.Response{Status: 401, Ended: true}); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		reserve("/a")
		if got := s.takes[len(s.takes)-1][0].Await; got <= 0 {
			t.Fatalf("the limit of failures awaits for %v", got)
		}
		for _, path := range []string{"/a", "/b"} {
			if _, err := r.Take(t.Context(), mete.Request{Attributes: policy.Map{"path": path}}); err != nil {
				t.Fatal(err)
			}
		}
		reserve("/b")
		reserve("/c")
		for _, take := range s.takes[len(s.takes)-4:] {
			if take[0].Await != 0 {
				t.Fatalf("a take of %s awaits for %v", take[0].Key, take[0].Await)
			}
		}
	}
}
