// SPDX-License-Identifier: Apache-2.0

package jwtclaims

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/metehq/mete/internal/follow"
)

const (
	// minReadInterval is the minimum time between reads because of unknown keys, which any client can cause.
	minReadInterval = 10 * time.Second

	// firstRetry is the delay after a failed read. It doubles, up to the interval.
	firstRetry = time.Second
)

func (v *Verifier) start(ctx context.Context) error {
	_, err := v.readKeySet(ctx, true)
	keys := v.keys.Load()
	if err == nil && keys.count == 0 && !isURL(v.config.KeySet) {
		err = fmt.Errorf("no usable key for %q", v.config.Algorithms)
		if notes := keys.notes(); notes != "" {
			err = fmt.Errorf("%w: %s", err, notes)
		}
	}
	if err != nil && !isURL(v.config.KeySet) {
		return fmt.Errorf("jwtclaims: key set %s: %w", redactKeySet(v.config.KeySet), err)
	}
	if err != nil {
		v.config.Logger.Error("cannot read key set; rejecting all tokens", "key_set", redactKeySet(v.config.KeySet), "err", err)
	}
	v.loop = follow.Loop{
		Interval: v.config.Interval, Retry: firstRetry, MinInterval: minReadInterval, Wanted: v.wanted, Read: v.readKeySet, Report: v.report,
	}
	v.loop.Begin(err)
	return nil
}

// requestRead triggers a read of the key set. It never blocks.
func (v *Verifier) requestRead() {
	select {
	case v.wanted <- struct{}{}:
	default: // already requested
	}
}

func (v *Verifier) report(news follow.News, err error) {
	switch news {
	case follow.NewsFailed:
		v.config.Logger.Error("cannot read key set; keeping old keys", "key_set", redactKeySet(v.config.KeySet), "keys", v.keys.Load().count, "err", err)
	case follow.NewsRecovered:
		v.config.Logger.Info("key set readable again", "key_set", redactKeySet(v.config.KeySet), "keys", v.keys.Load().count)
	}
}

// readKeySet reads the key set and activates it if it has changed. Removed keys and all tokens that they
// verified become invalid immediately. It reports no change to the loop, because [Verifier.activate] logs changes.
func (v *Verifier) readKeySet(ctx context.Context, _ bool) (changed bool, err error) {
	data, err := v.source(ctx)
	if err != nil {
		v.failed.Add(1)
		return false, err
	}
	digest := sha256.Sum256(data)
	if digest != v.digest {
		keys, err := readKeys(data, v.config)
		if err != nil {
			v.failed.Add(1)
			return false, err
		}
		v.activate(keys)
		v.digest = digest
	}
	v.read.Add(1)
	v.readAt.Store(time.Now().UnixNano())
	return false, nil
}

// activate replaces the active keys.
func (v *Verifier) activate(keys *keys) {
	v.keys.Store(keys)
	v.changed.Add(1)
	args := []any{"key_set", redactKeySet(v.config.KeySet), "keys", keys.count, "left_out", len(keys.ignored)}
	switch {
	case keys.count == 0:
		v.config.Logger.Error("key set has no usable key; rejecting all tokens", append(args, "why", keys.notes())...)
	case len(keys.ignored) > 0:
		v.config.Logger.Info("keys active", append(args, "why", keys.notes())...)
	default:
		v.config.Logger.Info("keys active", args...)
	}
}
