// SPDX-License-Identifier: Apache-2.0

package server

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/guard"
)

func TestBreakerChanged_AnOutageBeginsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &buckets{log: slog.New(slog.DiscardHandler), health: new(storeHealth)}
		began := time.Now()
		b.breakerChanged(guard.StateClosed, guard.StateOpen)
		for range 3 {
			time.Sleep(time.Second)
			b.breakerChanged(guard.StateOpen, guard.StateHalfOpen)
			b.breakerChanged(guard.StateHalfOpen, guard.StateOpen)
		}
		if since := b.health.since(); since == nil || !since.Equal(began) {
			t.Errorf("after three tries the store is down since %v, want %v", since, began)
		}
		time.Sleep(time.Second)
		b.breakerChanged(guard.StateOpen, guard.StateHalfOpen)
		b.breakerChanged(guard.StateHalfOpen, guard.StateClosed)
		if since, ended := b.health.since(), time.Now(); !since.Equal(ended) {
			t.Errorf("it answers since %v, want %v", since, ended)
		}
	})
}
