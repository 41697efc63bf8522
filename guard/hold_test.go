// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

func TestStore_Holds(t *testing.T) {
	storetest.RunHoldsBriefly(t, func(t *testing.T, now func() bucket.Instant) mete.Store {
		return guarded(t, storetest.NewModel(now), guard.Config{})
	})
}

// A failing holder fails every call about holds.
type failingHolder struct {
	mete.Store
	err   error
	calls int
}

func (f *failingHolder) Hold(_ context.Context, dst []bucket.Snapshot, _ []store.Charge, _ mete.Mode, _ store.Hold) ([]bucket.Snapshot, string, error) {
	f.calls++
	return dst, "", f.err
}

func (f *failingHolder) Settle(context.Context, string, ...bucket.Tokens) (store.HoldStatus, error) {
	f.calls++
	return store.HoldStatus{}, f.err
}

func (f *failingHolder) Renew(context.Context, string, time.Duration) (store.HoldStatus, error) {
	f.calls++
	return store.HoldStatus{}, f.err
}

// An open breaker rejects calls about holds, and failures of these calls open it. Refusals do not.
func TestStore_HoldsOpenTheBreaker(t *testing.T) {
	for _, tc := range []struct {
		err  error
		open bool
	}{{errors.New("no route"), true}, {store.ErrTooManyHolds, false}, {store.ErrHoldEnded, false}, {store.ErrHoldKeys, false}, {store.ErrHold, false}} {
		inner := &failingHolder{Store: storetest.NewModel(storetest.NewClock().Now), err: tc.err}
		s := guarded(t, inner, guard.Config{Failures: 3, MinFailing: -1, OpenFor: time.Hour})
		for range 4 {
			if _, _, err := s.Hold(t.Context(), nil, nil, mete.Mode{}, store.Hold{}); err == nil {
				t.Fatal("no error")
			}
		}
		_, settleErr := s.Settle(t.Context(), "x", 0)
		_, renewErr := s.Renew(t.Context(), "x", time.Second)
		if errors.Is(settleErr, store.ErrUnavailable) != tc.open || errors.Is(renewErr, store.ErrUnavailable) != tc.open {
			t.Errorf("after %v: errors %v and %v; want the breaker open: %v", tc.err, settleErr, renewErr, tc.open)
		}
		if want := map[bool]int{true: 3, false: 6}[tc.open]; inner.calls != want {
			t.Errorf("after %v: %d calls, want %d", tc.err, inner.calls, want)
		}
	}
}

func TestStore_WithoutHolds(t *testing.T) {
	s := guarded(t, &counted{Store: struct{ mete.Store }{storetest.NewModel(storetest.NewClock().Now)}}, guard.Config{})
	_, _, holdErr := s.Hold(t.Context(), nil, nil, mete.Mode{}, store.Hold{})
	_, settleErr := s.Settle(t.Context(), "x", 0)
	_, renewErr := s.Renew(t.Context(), "x", time.Second)
	for _, err := range []error{holdErr, settleErr, renewErr} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("error %v, want ErrUnsupported", err)
		}
	}
}
