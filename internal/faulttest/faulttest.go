// SPDX-License-Identifier: Apache-2.0

// Package faulttest has callers take from a store while something breaks, and then
// holds what they were told against the bound, and against what is missing from the
// buckets.
package faulttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
)

// What callers want: an answer within so long.
const (
	Within   = 50 * time.Millisecond
	Patience = time.Minute // with what must come, however slow the machine

	turn = 2 * time.Millisecond // between two takes of a taker

	unanswered = 20 // takes in a row that were too late, after which a taker waits twice as long
)

// Limit is a limit that cannot be wrong.
func Limit(tokens bucket.Tokens, refill bucket.Rate) bucket.Limit {
	l, err := bucket.NewLimit(tokens*bucket.Token, refill)
	if err != nil {
		panic(err)
	}
	return l
}

// Alone runs the test beside others, and fails it where something that it started
// outlives it. It comes first, so that it looks last.
func Alone(t *testing.T) {
	t.Parallel()
	const label = "fault"
	pprof.SetGoroutineLabels(pprof.WithLabels(t.Context(), pprof.Labels(label, t.Name())))
	t.Cleanup(func() {
		pprof.SetGoroutineLabels(context.Background())
		mine := fmt.Sprintf("%q:%q", label, t.Name())
		Eventually(t, "its goroutines have ended", func() error {
			var all bytes.Buffer
			if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
				return err
			}
			for stack := range strings.SplitSeq(all.String(), "\n\n") {
				if strings.Contains(stack, mine) {
					return errors.New(stack)
				}
			}
			return nil
		})
	})
}

// Soon sees to it that f takes no longer than most, but for when the machine does other
// things: what waits for too long does so every time.
func Soon(t testing.TB, what string, most time.Duration, f func()) {
	t.Helper()
	const tries = 5
	least := time.Duration(math.MaxInt64)
	for range tries {
		began := time.Now()
		f()
		if least = min(least, time.Since(began)); least <= most {
			return
		}
	}
	t.Errorf("%s: took %v and more, %d times in a row, want %v at most", what, least, tries, most)
}

// Eventually waits until a condition holds.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := proctest.Poll(ctx, func(context.Context) error { return check() }); err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}
