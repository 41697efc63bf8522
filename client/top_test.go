// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/topkeys"
)

func TestClient_Top(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [{"name": "free", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 10, "burst": 2}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(store, m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	now := bucket.At(time.Now())
	top, err := topkeys.New(topkeys.Config{}, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"free:ip=192.0.2.1", "free:ip=192.0.2.1", "free:ip=192.0.2.2"} {
		top.Record(now, topkeys.KindDenied, "free", key, time.Hour)
	}
	top.Record(now, topkeys.KindNear, "free", "free:ip=192.0.2.3", 0)
	api, err := httpapi.New(lim, httpapi.Config{Admin: true, Top: httpapi.Top{Tracker: top}})
	if err != nil {
		t.Fatal(err)
	}
	c, ctx := newClient(t, api), context.Background()
	for _, tt := range []struct {
		query client.TopQuery
		keys  []string
	}{
		{client.TopQuery{}, []string{"free:ip=192.0.2.1", "free:ip=192.0.2.2"}},
		{client.TopQuery{Rule: "free", Kind: "denied", Limit: 1, Window: 30 * time.Second}, []string{"free:ip=192.0.2.1"}},
		{client.TopQuery{Kind: "near"}, []string{"free:ip=192.0.2.3"}},
		{client.TopQuery{Kind: "shadow"}, nil},
	} {
		a, err := c.Top(ctx, tt.query)
		if err != nil || len(a.Keys) != len(tt.keys) {
			t.Errorf("Top(%+v) = %+v, %v; want %q", tt.query, a, err, tt.keys)
			continue
		}
		for i, key := range tt.keys {
			if a.Keys[i].Key != key {
				t.Errorf("Top(%+v): key %d is %q, want %q", tt.query, i, a.Keys[i].Key, key)
			}
		}
	}
	for _, q := range []client.TopQuery{{Rule: "no&rule"}, {Kind: "all"}, {Limit: -1}, {Window: -1}} {
		_, err := c.Top(ctx, q)
		if e, ok := errors.AsType[*client.Error](err); !ok || e.Kind != client.KindRefused || e.Problem == nil {
			t.Errorf("Top(%+v): %v, want it refused", q, err)
		}
	}
	other := newClient(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{}`))
	}))
	if _, err := other.Top(ctx, client.TopQuery{}); err == nil {
		t.Error("an answer without keys is taken for one")
	}
}
