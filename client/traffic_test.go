// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/monitor"
)

func TestClient_Traffic(t *testing.T) {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(store, nil, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	mon, err := monitor.New(monitor.NewCounts("memory"), lim.Policy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mon.Close)
	admin, err := httpapi.New(lim, httpapi.Config{Admin: true, Live: httpapi.Live{Monitor: mon}})
	if err != nil {
		t.Fatal(err)
	}
	c, ctx := newClient(t, admin), context.Background()
	for window, want := range map[time.Duration]float64{0: 60, 10 * time.Second: 10} {
		if got, err := c.Traffic(ctx, window); err != nil || got.Window != want || len(got.Rules) != 0 {
			t.Errorf("of %v: %+v, %v; want %v s", window, got, err, want)
		}
	}
	_, err = c.Traffic(ctx, time.Hour)
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Kind != client.KindRefused || e.Problem == nil {
		t.Errorf("of an hour: %v, want it refused", err)
	}
	other := newClient(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{}`))
	}))
	if _, err := other.Traffic(ctx, 0); err == nil {
		t.Error("an answer without a window is taken for traffic")
	}
}
