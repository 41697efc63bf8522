// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
)

// held returns a store with one call in flight to a paused server. One take is in it, and may be spent. It
// returns a function that resumes the server.
func held(t *testing.T, config redisstore.Config) (s *redisstore.Store, r *proctest.Redis, first chan error) {
	t.Helper()
	r = proctest.StartRedis(t)
	config.MaxInFlight, config.Timeout = 1, faulttest.Patience
	options, _, err := redisstore.ParseURL("redis://" + r.Addr)
	if err != nil {
		t.Fatal(err)
	}
	options.ConnWriteTimeout = faulttest.Patience // else a client on a slow machine closes the connection
	s, _ = dialWith(t, options, config)
	if err := s.Reset(t.Context(), []string{"k"}); err != nil {
		t.Fatal(err)
	}
	r.Pause()
	t.Cleanup(r.Resume)
	first = make(chan error, 1)
	go func() {
		_, _, err := s.Take(context.Background(), nil, slowCharges("k"), mete.Mode{})
		first <- err
	}()
	waiting(t, s, 0, 1)
	return s, r, first
}

// waiting waits until this many takes are queued and this many calls are in flight.
func waiting(t *testing.T, s *redisstore.Store, want, inFlight int) {
	t.Helper()
	faulttest.Eventually(t, "takes have come and gone", func() error {
		if got := s.Stats(); got.Waiting != want || got.InFlight != inFlight {
			return fmt.Errorf("%d takes wait and %d calls are on the wire, want %d and %d", got.Waiting, got.InFlight, want, inFlight)
		}
		return nil
	})
}

// unspent asserts a NotSpent error with this cause.
func unspent(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || mete.Spent(err) != mete.NotSpent {
		t.Errorf("error %v, maybe spent: %t; want %v and not spent", err, mete.Spent(err) == mete.MaybeSpent, want)
	}
}

func TestFault_CanceledLeaveTheQueue(t *testing.T) {
	faulttest.RunParallel(t)
	s, r, first := held(t, redisstore.Config{})
	const callers = 50
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			keys := []string{"k", "l", "m"}[:1+i%3]
			_, _, err := s.Take(ctx, nil, slowCharges(keys...), mete.Mode{})
			unspent(t, err, context.Canceled)
		})
	}
	waiting(t, s, callers, 1)
	cancel()
	all.Wait()
	waiting(t, s, 0, 1)
	faulttest.CheckDuration(t, "a take that waits for so long", faulttest.Within+slack, func() {
		_, _, err := s.Take(t.Context(), nil, slowCharges("k"), mete.Mode{Within: faulttest.Within})
		unspent(t, err, context.DeadlineExceeded)
	})
	waiting(t, s, 0, 1)
	r.Resume()
	if err := <-first; err != nil {
		t.Errorf("the take that was on the wire: %v", err)
	}
	snaps, _, err := s.Take(t.Context(), nil, slowCharges("k"), mete.Mode{})
	if err != nil || snaps[0].Remaining() != slowLimit.Capacity()-2*1000 {
		t.Errorf("afterwards: %v, %v; want two takes missing", snaps, err)
	}
	waiting(t, s, 0, 0)
}

func TestFault_QueueIsBounded(t *testing.T) {
	faulttest.RunParallel(t)
	const bound = 20
	s, r, first := held(t, redisstore.Config{MaxQueue: bound})
	var all sync.WaitGroup
	for range bound {
		all.Go(func() {
			if _, allowed, err := s.Take(t.Context(), nil, slowCharges("k"), mete.Mode{}); err != nil || !allowed {
				t.Errorf("a take that found room in the queue: %v, %v", allowed, err)
			}
		})
	}
	waiting(t, s, bound, 1)
	for range 3 * bound {
		_, _, err := s.Take(t.Context(), nil, slowCharges("k"), mete.Mode{})
		unspent(t, err, store.ErrOverloaded)
	}
	if got := s.Stats().Refused; got != 3*bound {
		t.Errorf("Stats().Refused = %d, want %d", got, 3*bound)
	}
	r.Resume()
	all.Wait()
	if err := <-first; err != nil {
		t.Error(err)
	}
	waiting(t, s, 0, 0)
}

// TestFault_LateTakesTakeNoRoom proves that abandoned takes occupy no space in the queue.
func TestFault_LateTakesTakeNoRoom(t *testing.T) {
	faulttest.RunParallel(t)
	s, r, first := held(t, redisstore.Config{MaxQueue: 1})
	for range 300 {
		_, _, err := s.Take(t.Context(), nil, slowCharges("k"), mete.Mode{Within: time.Millisecond})
		unspent(t, err, context.DeadlineExceeded)
	}
	r.Resume()
	if err := <-first; err != nil {
		t.Error(err)
	}
	snaps, _, err := s.Take(t.Context(), nil, slowCharges("k"), mete.Mode{})
	if err != nil || snaps[0].Remaining() != slowLimit.Capacity()-2*1000 {
		t.Errorf("afterwards: %v, %v; want two takes missing", snaps, err)
	}
}

// TestFault_CloseWithTakesInFlight proves that Close waits for the calls in flight and queued takes, and rejects
// later takes.
func TestFault_CloseWithTakesInFlight(t *testing.T) {
	faulttest.RunParallel(t)
	s, r, first := held(t, redisstore.Config{})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, _, err := s.Take(t.Context(), nil, slowCharges("k"), mete.Mode{}); err != nil && mete.Spent(err) != mete.NotSpent {
				t.Errorf("a take that waited: %v, want an answer, or not spent", err)
			}
		})
	}
	waiting(t, s, 50, 1)
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	faulttest.Eventually(t, "nothing more is taken", func() error {
		_, _, err := s.Take(t.Context(), nil, slowCharges("k"), mete.Mode{Within: time.Millisecond})
		if err == nil || errors.Is(err, context.DeadlineExceeded) || mete.Spent(err) != mete.NotSpent {
			return fmt.Errorf("take: %v", err)
		}
		return nil
	})
	r.Resume()
	for _, done := range []chan error{first, closed} {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	all.Wait()
	if err := s.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
	waiting(t, s, 0, 0)
}
