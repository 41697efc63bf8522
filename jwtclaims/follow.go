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

// A follower is what is known of the key set from one look to the next. It belongs to
// one goroutine.
type follower struct {
	digest [sha256.Size]byte // of what is in force
	looks  follow.Memory
	retry  time.Duration // after a look that failed
}

// begin looks at the key set for the first time.
func (v *Verifier) begin(ctx context.Context) error {
	f := &v.follower
	err := v.look(ctx, f)
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
		f.looks.Note(false, err)
		v.config.Logger.Error("cannot read the key set: until it can be, no token is accepted and all claims are missing",
			"key_set", shown(v.config.KeySet), "error", err)
	}
	return nil
}

// follow looks at the key set from time to time, until ctx ends.
func (v *Verifier) follow(ctx context.Context) {
	f := &v.follower
	last := time.Now()
	next := time.NewTimer(v.wait(f))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.wanted:
			if early := time.Until(last.Add(patience)); early > 0 {
				if patience < v.config.Interval && !f.looks.Failing() {
					next.Reset(early)
				}
				continue
			}
		case <-next.C:
		}
		v.lookAgain(ctx, f)
		last = time.Now()
		next.Reset(v.wait(f))
	}
}

// wait is until the next look.
func (v *Verifier) wait(f *follower) time.Duration {
	if !f.looks.Failing() {
		f.retry = 0
		return v.config.Interval
	}
	f.retry = min(max(firstRetry, 2*f.retry), v.config.Interval)
	return f.retry
}

// want has the key set looked at before its time. It never waits.
func (v *Verifier) want() {
	select {
	case v.wanted <- struct{}{}:
	default: // it will be
	}
}

// lookAgain looks, and says when looking begins to fail and when it works again.
func (v *Verifier) lookAgain(ctx context.Context, f *follower) {
	err := v.look(ctx, f)
	if ctx.Err() != nil {
		return
	}
	switch f.looks.Note(false, err) {
	case follow.Failed:
		v.config.Logger.Error("cannot read the key set; the old keys stay in force", "key_set", shown(v.config.KeySet), "keys", v.keys.Load().count, "error", err)
	case follow.Recovered:
		v.config.Logger.Info("the key set can be read again", "key_set", shown(v.config.KeySet), "keys", v.keys.Load().count)
	}
}

// look reads the key set and puts it in force if it has changed. Keys that are not
// in it any more are gone at once, with all that they had verified.
func (v *Verifier) look(ctx context.Context, f *follower) error {
	data, err := v.source(ctx)
	if err != nil {
		v.failed.Add(1)
		return err
	}
	digest := sha256.Sum256(data)
	if digest != f.digest {
		keys, err := readKeys(data, v.config)
		if err != nil {
			v.failed.Add(1)
			return err
		}
		v.put(keys)
		f.digest = digest
	}
	v.read.Add(1)
	v.readAt.Store(time.Now().UnixNano())
	return nil
}

// put puts keys in force.
func (v *Verifier) put(keys *keys) {
	v.keys.Store(keys)
	v.changed.Add(1)
	args := []any{"key_set", shown(v.config.KeySet), "keys", keys.count, "left_out", len(keys.leftOut)}
	switch {
	case keys.count == 0:
		v.config.Logger.Error("the key set has no key of use: no token is accepted", append(args, "why", keys.notes())...)
	case len(keys.leftOut) > 0:
		v.config.Logger.Info("keys are in force", append(args, "why", keys.notes())...)
	default:
		v.config.Logger.Info("keys are in force", args...)
	}
}
