// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/cmd/internal/stores"
	"github.com/metehq/mete/store"
)

// A storeHealth records the last outage and overflow of the store. The zero value records none. It is safe for
// concurrent use.
type storeHealth struct {
	outage, full atomic.Int64 // Unix nanoseconds
	failure      atomic.Pointer[error]
}

// fullFor is how long a store counts as full after its last overflow.
const fullFor = 10 * time.Second

func (h *storeHealth) isFull() bool {
	at := h.full.Load()
	return at != 0 && time.Since(time.Unix(0, at)) < fullFor
}

// since returns the start of the current outage, or the end of the last one. It returns nil without an outage.
func (h *storeHealth) since() *time.Time {
	at := h.outage.Load()
	if at == 0 {
		return nil
	}
	t := time.Unix(0, at).UTC()
	return &t
}

func (h *storeHealth) lastError() error {
	if err := h.failure.Load(); err != nil {
		return *err
	}
	return nil
}

type timedStore struct {
	stores.Store
	store.Documents // from Store
	metrics         *metrics.Registry
	health          *storeHealth
}

func (s *timedStore) record(operation string, begin time.Time, err error) {
	s.metrics.ObserveStoreCall(operation, time.Since(begin), err)
	if err != nil {
		s.health.failure.Store(&err)
	}
}

func (s *timedStore) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	begin := time.Now()
	dst, allowed, err := s.Store.Take(ctx, dst, charges, mode)
	s.record(metrics.StoreTake, begin, err)
	return dst, allowed, err
}

func (s *timedStore) Refund(ctx context.Context, refunds []mete.Refund, id string) error {
	begin := time.Now()
	err := s.Store.Refund(ctx, refunds, id)
	s.record(metrics.StoreRefund, begin, err)
	return err
}

func (s *timedStore) Reset(ctx context.Context, keys []string) error {
	begin := time.Now()
	err := s.Store.Reset(ctx, keys)
	s.record(metrics.StoreReset, begin, err)
	return err
}

// Hold implements [store.Holder].
func (s *timedStore) Hold(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode, h store.Hold) ([]bucket.Snapshot, string, error) {
	holder, err := s.holder()
	if err != nil {
		return dst, "", err
	}
	begin := time.Now()
	dst, id, err := holder.Hold(ctx, dst, charges, mode, h)
	s.record(metrics.StoreHold, begin, err)
	return dst, id, err
}

// Settle implements [store.Holder].
func (s *timedStore) Settle(ctx context.Context, id string, actual ...bucket.Tokens) (store.HoldStatus, error) {
	holder, err := s.holder()
	if err != nil {
		return store.HoldStatus{}, err
	}
	begin := time.Now()
	status, err := holder.Settle(ctx, id, actual...)
	s.record(metrics.StoreSettle, begin, err)
	return status, err
}

// Renew implements [store.Holder].
func (s *timedStore) Renew(ctx context.Context, id string, ttl time.Duration) (store.HoldStatus, error) {
	holder, err := s.holder()
	if err != nil {
		return store.HoldStatus{}, err
	}
	begin := time.Now()
	status, err := holder.Renew(ctx, id, ttl)
	s.record(metrics.StoreRenew, begin, err)
	return status, err
}

func (s *timedStore) holder() (store.Holder, error) {
	h, ok := store.As[store.Holder](s.Store)
	if !ok {
		return nil, fmt.Errorf("hold: %w by the store", errors.ErrUnsupported)
	}
	return h, nil
}

// Unwrap returns the measured store.
func (s *timedStore) Unwrap() mete.Store { return s.Store }
