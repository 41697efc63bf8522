// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/audit"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

func TestClient_Bucket(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [{"name": "free", "limit_keys": ["query:user"], "algorithm_config": {"rate": "1/1h", "burst": 5}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	clock := bucket.At(time.Now())
	store, err := memstore.New(memstore.Config{Now: func() bucket.Instant { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(store, m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	record, err := audit.New(audit.Config{
		Caller: func(*http.Request) (audit.Caller, bool) { return audit.Caller{Name: "kim"}, true }, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := httpapi.New(lim, httpapi.Config{
		Admin: true, Audit: record,
	})
	if err != nil {
		t.Fatal(err)
	}
	c, ctx := newClient(t, h), t.Context()
	const key = "free:user=a+b&c"
	if taken, err := c.TakeBucket(ctx, key, 3.25, "test"); err != nil || taken.Taken.String() != "3.25" || taken.After.Remaining.String() != "1.75" {
		t.Errorf("take: %+v, %v", taken, err)
	}
	if b, err := c.Bucket(ctx, key); err != nil || b.Key != key || b.Remaining.String() != "1.75" || b.Capacity.String() != "5" {
		t.Errorf("bucket: %+v, %v", b, err)
	}
	if r, err := c.ResetBucket(ctx, key, "by mistake"); err != nil || r.Given.String() != "3.25" || r.After.Remaining.String() != "5" {
		t.Errorf("reset: %+v, %v", r, err)
	}
	if a, err := c.Activity(ctx); err != nil || len(a.Activity) != 2 || a.Activity[0].Reason != "by mistake" || a.Activity[1].Key != key {
		t.Errorf("activity: %+v, %v", a, err)
	}
	for name, err := range map[string]error{
		"no such key": func() error { _, err := c.Bucket(ctx, "fre:user=a"); return err }(),
		"no reason":   func() error { _, err := c.ResetBucket(ctx, key, ""); return err }(),
		"no tokens":   func() error { _, err := c.TakeBucket(ctx, key, 0, ""); return err }(),
	} {
		if e, ok := errors.AsType[*client.Error](err); !ok || e.Kind != client.KindRefused || e.Problem == nil {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
	other := newClient(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{}`))
	}))
	if _, err := other.Bucket(ctx, key); err == nil {
		t.Error("an answer without a bucket is taken for one")
	}
}
