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
	// patience is between two looks that tokens of unknown keys bring forward:
	// anybody can send one.
	patience = 10 * time.Second

	// firstRetry is between a look that failed and the next. It doubles, up to the
	// interval.
	firstRetry = time.Second
)

// begin looks at the key set for the first time.
func (v *Verifier) begin(ctx context.Context) error {
	_, err := v.look(ctx, true)
	keys := v.keys.Load()
	if err == nil && keys.count == 0 && !isURL(v.config.KeySet) {
		err = fmt.Errorf("no key is of use for %q", v.config.Algorithms)
		if notes := keys.notes(); notes != "" {
			err = fmt.Errorf("%w: %s", err, notes)
		}
	}
	if err != nil && !isURL(v.config.KeySet) {
		return fmt.Errorf("jwtclaims: key set %s: %w", shown(v.config.KeySet), err)
	}
	if err != nil {
		v.config.Logger.Error("cannot read key set, no token is accepted until it can be read", "key_set", shown(v.config.KeySet), "err", err)
	}
	v.loop = follow.Loop{
		Interval: v.config.Interval, Retry: firstRetry, Patience: patience, Wanted: v.wanted, Look: v.look, Tell: v.tell,
	}
	v.loop.Begin(err)
	return nil
}

// want has the key set looked at before its time. It never waits.
func (v *Verifier) want() {
	select {
	case v.wanted <- struct{}{}:
	default: // it will be
	}
}

// tell logs when reading begins to fail and when it works again.
func (v *Verifier) tell(news follow.News, err error) {
	switch news {
	case follow.Failed:
		v.config.Logger.Error("cannot read key set, old keys stay active", "key_set", shown(v.config.KeySet), "keys", v.keys.Load().count, "err", err)
	case follow.Recovered:
		v.config.Logger.Info("key set readable again", "key_set", shown(v.config.KeySet), "keys", v.keys.Load().count)
	}
}

// look reads the key set and activates it if it has changed. Keys that are no longer in it
// are gone at once, with all that they had verified. The news is the readable set alone:
// [Verifier.put] logs changes.
func (v *Verifier) look(ctx context.Context, _ bool) (changed bool, err error) {
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
		v.put(keys)
		v.digest = digest
	}
	v.read.Add(1)
	v.readAt.Store(time.Now().UnixNano())
	return false, nil
}

// put activates keys.
func (v *Verifier) put(keys *keys) {
	v.keys.Store(keys)
	v.changed.Add(1)
	args := []any{"key_set", shown(v.config.KeySet), "keys", keys.count, "left_out", len(keys.leftOut)}
	switch {
	case keys.count == 0:
		v.config.Logger.Error("key set has no usable key, no token is accepted", append(args, "why", keys.notes())...)
	case len(keys.leftOut) > 0:
		v.config.Logger.Info("keys active", append(args, "why", keys.notes())...)
	default:
		v.config.Logger.Info("keys active", args...)
	}
}
