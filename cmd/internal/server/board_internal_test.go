// SPDX-License-Identifier: Apache-2.0

package server

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/guard"
)

func TestOnBreaker_AnOutageBeginsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{log: slog.New(slog.DiscardHandler)}
		began := time.Now()
		s.onBreaker(guard.Closed, guard.Open)
		for range 3 {
			time.Sleep(time.Second)
			s.onBreaker(guard.Open, guard.HalfOpen)
			s.onBreaker(guard.HalfOpen, guard.Open)
		}
		if since := s.lately.since(); since == nil || !since.Equal(began) {
			t.Errorf("after three tries the store is down since %v, want %v", since, began)
		}
		time.Sleep(time.Second)
		s.onBreaker(guard.Open, guard.HalfOpen)
		s.onBreaker(guard.HalfOpen, guard.Closed)
		if since, ended := s.lately.since(), time.Now(); !since.Equal(ended) {
			t.Errorf("it answers since %v, want %v", since, ended)
		}
	})
}
