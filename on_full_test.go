// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"

	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// A rule selects the treatment of new keys in a full store, also in shadow.
func TestOnFull(t *testing.T) {
	clock := storetest.NewClock()
	full, err := memstore.New(memstore.Config{MaxKeys: 50, Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	m, err := policy.Load([]byte(`{"rules": [
		{"name": "open", "match": {"path": "/open"}, "limit_keys": ["ip:address"], "group": "open", "on_full": "open", "rate": "3/1h"},
		{"name": "closed", "match": {"path": "/closed"}, "limit_keys": ["ip:address"], "group": "closed", "on_full": "closed", "rate": "3/1h"},
		{"name": "trial", "match": {"path": "/trial"}, "limit_keys": ["ip:address"], "group": "trial", "on_full": "closed", "mode": "shadow", "rate": "3/1h"},
		{"name": "share", "limit_keys": ["ip:address"], "group": "share", "rate": "3/1h"}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := mete.New(full, m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	take := func(path, ip string) mete.Decision {
		t.Helper()
		d, err := l.Take(t.Context(), mete.Request{Attributes: policy.Map{"path": path, "ip:address": ip}})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for i := range 50 {
		take("/", fmt.Sprint("192.0.2.", i))
	}
	for _, tt := range []struct {
		path, rule, reason string
		retry              time.Duration
		spills             []bucket.Spill
	}{
		{"/open", "open", "", 0, []bucket.Spill{bucket.SpillOpened, bucket.SpillShared}},
		{"/closed", "closed", store.ReasonFull, time.Second, []bucket.Spill{bucket.SpillClosed, bucket.SpillShared}},
		{"/trial", "share", "", 0, []bucket.Spill{bucket.SpillShared}},
		{"/", "share", "", 0, []bucket.Spill{bucket.SpillShared}},
		{"/open", "share", "token_bucket_exceeded", 20 * time.Minute, []bucket.Spill{bucket.SpillOpened, bucket.SpillShared}},
	} {
		d := take(tt.path, "198.51.100.1")
		if d.Rule != tt.rule || d.Reason != tt.reason || d.RetryAfter != tt.retry || len(d.Limits()) != len(tt.spills) {
			t.Fatalf("%s: %+v, want %q by %s for %v", tt.path, d, tt.reason, tt.rule, tt.retry)
		}
		for i, want := range tt.spills {
			if got := d.Limits()[i].Spill; got != want {
				t.Errorf("%s: limit %d has spill %q, want %q", tt.path, i, got, want)
			}
		}
		if tt.path == "/trial" && (len(d.Shadow) != 1 || d.Shadow[0].Allowed || d.Shadow[0].Reason() != store.ReasonFull) {
			t.Errorf("shadow %+v, want a denial because the store is full", d.Shadow)
		}
	}
}
