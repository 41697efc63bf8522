// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/redis/rueidis"
)

// What callers want in the tests of faults: an answer within so long. A machine
// that does other things too may add slack.
const (
	within = 50 * time.Millisecond
	slack  = 150 * time.Millisecond

	primed = 180 // tokens that a bucket lacks at first, so that it is never full

	turn     = 2 * time.Millisecond // between two takes of a taker
	patience = 20 * time.Second     // with what must come, however slow the machine
)

// faultLimit refills so slowly that no fault lasts until a bucket that was emptied
// is full again: then what has been taken shows to the last unit.
// A bucket of slowLimit does not refill while a test looks.
var (
	faultLimit = limitOf(200, bucket.PerSecond(10*bucket.Token))
	slowLimit  = limitOf(200, bucket.Rate{Tokens: bucket.Token, Per: 1000 * time.Hour})
)

func limitOf(tokens bucket.Tokens, refill bucket.Rate) bucket.Limit {
	l, err := bucket.NewLimit(tokens*bucket.Token, refill)
	if err != nil {
		panic(err)
	}
	return l
}

func chargesOf(keys ...string) []mete.Charge {
	var charges []mete.Charge
	for _, k := range keys {
		charges = append(charges, mete.Charge{Key: k, Limit: faultLimit, Cost: bucket.Token})
	}
	return charges
}

func slowCharges(keys ...string) []mete.Charge {
	charges := chargesOf(keys...)
	for i := range charges {
		charges[i].Limit = slowLimit
	}
	return charges
}

func leased(keys ...string) []mete.Charge {
	charges := chargesOf(keys...)
	for i := range charges {
		charges[i].Leased = true
	}
	return charges
}

// alone runs the test beside others, and fails it where something that it started
// outlives it. It comes first, so that it looks last.
func alone(t *testing.T) {
	t.Parallel()
	const label = "fault"
	pprof.SetGoroutineLabels(pprof.WithLabels(t.Context(), pprof.Labels(label, t.Name())))
	t.Cleanup(func() {
		pprof.SetGoroutineLabels(context.Background())
		mine := fmt.Sprintf("%q:%q", label, t.Name())
		eventually(t, "its goroutines have ended", func() error {
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

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := proctest.Poll(ctx, func(context.Context) error { return check() }); err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

// dialURL connects as redisstore.Open does.
func dialURL(t testing.TB, url string, config redisstore.Config) (*redisstore.Store, rueidis.Client) {
	t.Helper()
	options, _, err := redisstore.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rueidis.NewClient(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s, err := redisstore.New(client, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // the server may be dead by now
	return s, client
}
