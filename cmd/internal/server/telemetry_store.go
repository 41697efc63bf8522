// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/store"
)

// Take implements [mete.Store].
func (n *timedNode) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	begin := time.Now()
	dst, allowed, err := n.node.Take(ctx, dst, charges, mode)
	n.asked(metrics.StoreTake, begin, err)
	return dst, allowed, err
}

// Refund implements [mete.Store].
func (n *timedNode) Refund(ctx context.Context, refunds []mete.Refund, id string) error {
	begin := time.Now()
	err := n.node.Refund(ctx, refunds, id)
	n.asked(metrics.StoreRefund, begin, err)
	return err
}

// Reset implements [mete.Store].
func (n *timedNode) Reset(ctx context.Context, keys []string) error {
	begin := time.Now()
	err := n.node.Reset(ctx, keys)
	n.asked(metrics.StoreReset, begin, err)
	return err
}

// Unwrap returns the store whose calls are timed.
func (n *timedNode) Unwrap() mete.Store { return n.node }
