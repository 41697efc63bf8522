// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

// The slot of a take is renewed until it is released. Then another request gets it.
func TestSlots(t *testing.T) {
	m, err := policy.Load([]byte(`{"rules": [{"name": "jobs", "limit_keys": ["query:tenant"], "algorithm": "concurrency", "max": 1, "lease": "30s"}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	clock := storetest.NewClock()
	lim, err := mete.New(storetest.NewModel(clock.Now), m, mete.Config{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	h, err := httpapi.New(lim, httpapi.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c, ctx := newClient(t, h), t.Context()
	req := client.Request{Attributes: map[string]string{"query:tenant": "acme"}}
	d, err := c.Take(ctx, req)
	if err != nil || !d.Allowed || d.Slot == "" {
		t.Fatalf("%+v, error %v; want a slot", d, err)
	}
	held := req
	held.Slot = d.Slot
	for range 2 {
		clock.Advance(29_000_000)
		if again, err := c.RenewSlots(ctx, held); err != nil || !again.Held || again.Lease != api.Seconds(30*time.Second) {
			t.Errorf("%+v, error %v; want 30 s more", again, err)
		}
	}
	if d, err := c.Take(ctx, req); err != nil || d.Allowed || d.Slot != "" {
		t.Errorf("%+v, error %v; want a denial", d, err)
	}
	for range 2 {
		if err := c.ReleaseSlots(ctx, held); err != nil {
			t.Errorf("release: %v", err)
		}
	}
	if again, err := c.RenewSlots(ctx, held); err != nil || again.Held || again.Lease != 0 {
		t.Errorf("%+v, error %v; want a slot that is not held", again, err)
	}
	if d, err := c.Take(ctx, req); err != nil || !d.Allowed || d.Slot == held.Slot {
		t.Errorf("%+v, error %v; want another slot", d, err)
	}
	unlimited := client.Request{Slot: d.Slot}
	wrong := req
	wrong.Slot = "x"
	for _, r := range []client.Request{req, unlimited, wrong} {
		if _, err := c.RenewSlots(ctx, r); refusal(err) != http.StatusBadRequest {
			t.Errorf("renew %+v: error %v, want 400", r, err)
		}
		if err := c.ReleaseSlots(ctx, r); refusal(err) != http.StatusBadRequest {
			t.Errorf("release %+v: error %v, want 400", r, err)
		}
	}
}
