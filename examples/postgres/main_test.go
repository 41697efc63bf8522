// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/proctest"
)

// open opens a shop until the test ends.
func open(t *testing.T, p *proctest.Postgres) *shop {
	t.Helper()
	s, err := openShop(t.Context(), p.URL()+"&schema=limits")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
	return s
}

func TestOrder(t *testing.T) {
	p := proctest.StartPostgres(t)
	a, b := open(t, p), open(t, p)
	for i, tt := range []struct {
		shop   *shop
		item   string
		placed bool
		denied bool
	}{
		{a, "tea", true, false},
		{a, "", false, false}, // the database rejects it, and it costs nothing
		{b, "", false, false},
		{b, "milk", true, false},
		{a, "sugar", true, false},
		{b, "biscuits", false, true},
		{a, "", false, true},
	} {
		err := tt.shop.placeOrder(t.Context(), "ada", tt.item)
		if (err == nil) != tt.placed || errors.Is(err, errTooMany) != tt.denied {
			t.Errorf("order %d, %q: %v, want placed %t, denied %t", i, tt.item, err, tt.placed, tt.denied)
		}
	}
	if err := a.placeOrder(t.Context(), "grace", "tea"); err != nil {
		t.Errorf("another customer: %v", err)
	}
	const want = "ada|tea\nada|milk\nada|sugar\ngrace|tea"
	if got, err := p.Psql("SELECT customer, item FROM orders"); err != nil || got != want {
		t.Errorf("orders: %q, %v, want %q", got, err, want)
	}
}

// TestOrder_WithoutPostgres proves that orders fail without PostgreSQL, and that other takes are decided locally.
func TestOrder_WithoutPostgres(t *testing.T) {
	p := proctest.StartPostgres(t)
	s := open(t, p)
	p.Kill()
	if err := s.placeOrder(t.Context(), "ada", "tea"); err == nil || errors.Is(err, errTooMany) {
		t.Errorf("an order without a database: %v, want an error that is not about limits", err)
	}
	allowed := 0
	for range 4 {
		d, err := s.limiter.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"customer": "ada"}})
		if err != nil || !d.Degraded {
			t.Errorf("take: %+v, %v, want a degraded decision", d, err)
		}
		if d.Allowed {
			allowed++
		}
	}
	if allowed != 3 {
		t.Errorf("%d of 4 allowed, want 3", allowed)
	}
}
