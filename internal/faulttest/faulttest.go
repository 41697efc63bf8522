// SPDX-License-Identifier: Apache-2.0

// Package faulttest lets callers take from a store during a fault. It then compares their answers with the
// bound of the limit and with the missing tokens of the buckets.
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

// The patience of callers.
const (
	Within   = 50 * time.Millisecond
	Patience = time.Minute // for answers that must come, even on a slow machine

	turn = 2 * time.Millisecond // between two takes of a taker

	maxUnanswered = 20 // consecutive late takes after which a taker doubles its timeout
)

// Limit returns a limit. It panics on an error.
func Limit(tokens bucket.Tokens, refill bucket.Rate) bucket.Limit {
	l, err := bucket.NewLimit(tokens*bucket.Token, refill)
	if err != nil {
		panic(err)
	}
	return l
}

// RunParallel runs the test in parallel, and fails it if a goroutine that it started outlives it. It must be the
// first call of the test, so that its cleanup runs last.
func RunParallel(t *testing.T) {
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

// CheckDuration fails the test if f takes longer than most. It retries, because a busy machine may delay f once.
func CheckDuration(t testing.TB, what string, most time.Duration, f func()) {
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
