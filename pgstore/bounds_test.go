// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// TestBounds blocks calls while others arrive.
func TestBounds(t *testing.T) {
	t.Parallel()
	p := proctest.StartPostgres(t)
	for name, test := range map[string]func(t *testing.T, p *proctest.Postgres){
		"the queue is full":     queueIsFull,
		"batches are bounded":   batchesAreBounded,
		"in the order of calls": inTheOrderOfCalls,
		"within":                withinWhileQueued,
		"within a call":         withinOfACall,
		"canceled":              canceled,
		"close":                 closeAnswersWhatIsAsked,
		"the largest calls":     largestCalls,
	} {
		t.Run(name, func(t *testing.T) { test(t, p) })
	}
}

// A dam is a store with calls that block until release.
type dam struct {
	*testing.T
	store   *pgstore.Store
	limit   bucket.Limit
	release func()
}

func newDam(t *testing.T, p *proctest.Postgres, config pgstore.Config) *dam {
	t.Helper()
	options, err := pgxpool.ParseConfig(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	// On a slow machine, the pool would ping connections that were unused for long, and a blocked server does not
	// answer.
	options.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	pool := poolOf(t, options)
	config.Schema = migrated(t, pool)
	config.Timeout, config.SweepEvery = awhile, -1
	d := &dam{T: t, store: open(t, pool, config), limit: tokens(t, 1000, "1/1000h")}
	takes(t, d.store, of(d.limit, 1, "k"), mete.Mode{})
	p.Pause()
	d.release = sync.OnceFunc(p.Resume)
	t.Cleanup(d.release)
	return d
}

// send takes from k in a goroutine.
func (d *dam) send(mode mete.Mode) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, allowed, err := d.store.Take(context.Background(), nil, of(d.limit, 1, "k"), mode)
		if err == nil && !allowed {
			err = errors.New("denied")
		}
		done <- err
	}()
	return done
}

// are waits until this many asks wait and this many calls are in flight.
func (d *dam) are(waiting, inFlight int) {
	d.Helper()
	until(d, func() error {
		if s := d.store.Stats(); s.Waiting != waiting || s.InFlight != inFlight {
			return fmt.Errorf("%d wait and %d calls are on their way, want %d and %d", s.Waiting, s.InFlight, waiting, inFlight)
		}
		return nil
	})
}

// answered asserts that an ask is admitted.
func (d *dam) answered(asks ...<-chan error) {
	d.Helper()
	for _, a := range asks {
		if err := <-a; err != nil {
			d.Error(err)
		}
	}
}

func queueIsFull(t *testing.T, p *proctest.Postgres) {
	d := newDam(t, p, pgstore.Config{MaxQueue: 3, MaxInFlight: 1})
	asks := []<-chan error{d.send(mete.Mode{})}
	d.are(0, 1)
	for i := range 3 {
		asks = append(asks, d.send(mete.Mode{}))
		d.are(i+1, 1)
	}
	for _, way := range []func() error{
		func() error { return <-d.send(mete.Mode{}) },
		func() error { return d.store.Refund(t.Context(), storetest.Refunds(of(d.limit, 1, "k")...), "") },
	} {
		notSpent(t, way(), store.ErrOverloaded)
	}
	if got := d.store.Stats().Refused; got != 2 {
		t.Errorf("%d refused, want 2", got)
	}
	d.release()
	d.answered(asks...)
	holds(t, d.store, "k", d.limit, 995*bucket.Token)
}

// batchesAreBounded queues more takes than fit in a call.
func batchesAreBounded(t *testing.T, p *proctest.Postgres) {
	d := newDam(t, p, pgstore.Config{MaxBatch: 4, MaxInFlight: 1})
	asks := []<-chan error{d.send(mete.Mode{})}
	d.are(0, 1)
	calls := d.store.Stats().Calls
	for i := range 10 {
		asks = append(asks, d.send(mete.Mode{}))
		d.are(i+1, 1)
	}
	d.release()
	d.answered(asks...)
	until(t, func() error {
		if got := d.store.Stats().Calls - calls; got != 1+3 {
			return fmt.Errorf("%d calls for 1 and 10 takes, want 1 and 3", got)
		}
		return nil
	})
	holds(t, d.store, "k", d.limit, 988*bucket.Token)
}

// TestTake_CallsAreBounded counts the connections that are busy.
func TestTake_CallsAreBounded(t *testing.T) {
	const most = 3
	pool := newPool(t)
	schema := migrated(t, pool)
	s := open(t, poolNamed(t, schema), pgstore.Config{Schema: schema, MaxInFlight: most, MaxBatch: 2, Timeout: awhile, SweepEvery: -1})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	var all sync.WaitGroup
	l := tokens(t, 1_000_000, "1/1s")
	for g := range 32 {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, _, err := s.Take(context.Background(), nil, of(l, 1, fmt.Sprint("k", g)), mete.Mode{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for ctx.Err() == nil {
		if n := number(t, pool, "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", schema); n > most {
			t.Errorf("%d connections, want at most %d", n, most)
		}
		if n := s.Stats().InFlight; n > most {
			t.Errorf("%d calls on their way, want at most %d", n, most)
		}
	}
	all.Wait()
}

// inTheOrderOfCalls queues takes from a bucket that cannot serve all.
func inTheOrderOfCalls(t *testing.T, p *proctest.Postgres) {
	d := newDam(t, p, pgstore.Config{MaxInFlight: 1, MaxBatch: 8})
	asks := []<-chan error{d.send(mete.Mode{})}
	d.are(0, 1)
	short := of(tokens(t, 10, "1/1000h"), 1, "short")
	var mu sync.Mutex
	var served []int
	var all sync.WaitGroup
	for i := range 20 { // three calls; the second is partly too late
		all.Go(func() {
			_, allowed, err := d.store.Take(context.Background(), nil, short, mete.Mode{})
			if err != nil {
				t.Error(err)
			}
			if allowed {
				mu.Lock()
				served = append(served, i)
				mu.Unlock()
			}
		})
		d.are(i+1, 1)
	}
	d.release()
	all.Wait()
	d.answered(asks...)
	slices.Sort(served)
	if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(served, want) {
		t.Errorf("%v were served, want the first 10", served)
	}
}

func withinWhileQueued(t *testing.T, p *proctest.Postgres) {
	d := newDam(t, p, pgstore.Config{MaxInFlight: 1})
	first := d.send(mete.Mode{Within: awhile})
	d.are(0, 1)
	err := <-d.send(mete.Mode{Within: 20 * time.Millisecond})
	notSpent(t, err, context.DeadlineExceeded) // it was not sent
	second := d.send(mete.Mode{})
	d.are(1, 1)
	d.release()
	d.answered(first, second)
	holds(t, d.store, "k", d.limit, 997*bucket.Token)
}

// withinOfACall tests timeouts of calls in flight: a call with a single ask, and a call that its caller abandons.
func withinOfACall(t *testing.T, p *proctest.Postgres) {
	for _, within := range []time.Duration{0, 500 * time.Millisecond} {
		d := newDam(t, p, pgstore.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() {
			_, _, err := d.store.Take(ctx, nil, of(d.limit, 1, "k"), mete.Mode{Within: within})
			done <- err
		}()
		if within == 0 {
			d.are(0, 1)
			cancel()
		}
		if err := <-done; err == nil || mete.Spent(err) != mete.MaybeSpent {
			t.Errorf("within %v: %v, want an error, and that it may be spent", within, err)
		}
		d.release()
	}
}

func canceled(t *testing.T, p *proctest.Postgres) {
	d := newDam(t, p, pgstore.Config{MaxInFlight: 1})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := d.store.Take(gone, nil, of(d.limit, 1, "k"), mete.Mode{})
	notSpent(t, err, context.Canceled)
	notSpent(t, d.store.Refund(gone, storetest.Refunds(of(d.limit, 1, "k")...), ""), context.Canceled)
	notSpent(t, d.store.Reset(gone, []string{"k"}), context.Canceled)

	first := d.send(mete.Mode{})
	d.are(0, 1)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, _, err := d.store.Take(ctx, nil, of(d.limit, 1, "k"), mete.Mode{})
		left <- err
	}()
	d.are(1, 1)
	cancel()
	notSpent(t, <-left, context.Canceled)
	d.release()
	d.answered(first)
	holds(t, d.store, "k", d.limit, 998*bucket.Token)
}

// closeAnswersWhatIsAsked proves that Close waits for calls in flight and queued takes, and that later takes
// fail.
func closeAnswersWhatIsAsked(t *testing.T, p *proctest.Postgres) {
	d := newDam(t, p, pgstore.Config{MaxInFlight: 1})
	asks := []<-chan error{d.send(mete.Mode{})}
	d.are(0, 1)
	for i := range 5 {
		asks = append(asks, d.send(mete.Mode{}))
		d.are(i+1, 1)
	}
	closed := make(chan error, 1)
	go func() { closed <- d.store.Close() }()
	until(t, func() error { // it is closing now
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, _, err := d.store.Take(ctx, nil, of(d.limit, 0, "k"), mete.Mode{DryRun: true})
		if errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		notSpent(t, err, nil)
		return nil
	})
	select {
	case err := <-closed:
		t.Errorf("Close returned %v before the takes were answered", err)
	default:
	}
	d.release()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	d.answered(asks...)
	if err := d.store.Close(); err != nil { // again
		t.Error(err)
	}
}

// TestTake_KeysOfAnyBytes uses keys that are not text, of the maximum length.
func TestTake_KeysOfAnyBytes(t *testing.T) {
	pool := newPool(t)
	s := open(t, pool, pgstore.Config{Schema: migrated(t, pool), Prefix: strings.Repeat("\xff", 255) + "\x00", SweepEvery: -1, Timeout: awhile})
	l := tokens(t, 10, "1/1000h")
	keys := []string{
		"\x00", "\x00\x00", "a\x00b", "a\xc3\x28", "\xff\xfe\x80", "%s'\"\\{},NULL", "\\x00", "ü",
		strings.Repeat("\x80", store.MaxKeyBytes-1), strings.Repeat("\x80", store.MaxKeyBytes),
	}
	slices.Sort(keys)
	for i := range 2 {
		for _, key := range keys { // alone
			takes(t, s, of(l, 1, key), mete.Mode{})
		}
		takes(t, s, of(l, 1, keys...), mete.Mode{}) // in the second statement
		var all sync.WaitGroup
		for _, key := range keys { // together
			all.Go(func() {
				for range 2 {
					if _, allowed, err := s.Take(context.Background(), nil, of(l, 1, key), mete.Mode{}); err != nil || !allowed {
						t.Errorf("%.40q: allowed %v, %v", key, allowed, err)
					}
				}
			})
		}
		all.Wait()
		for _, key := range keys {
			holds(t, s, key, l, bucket.Tokens(6-4*i)*bucket.Token)
		}
	}
	if err := s.Reset(t.Context(), keys[:5]); err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		holds(t, s, key, l, map[bool]bucket.Tokens{true: 10, false: 2}[i < 5]*bucket.Token)
	}
	if err := s.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		holds(t, s, key, l, 10*bucket.Token)
	}
}

// largestCalls sends the maximum number of charges per take, and of takes per call, plain and other.
func largestCalls(t *testing.T, p *proctest.Postgres) {
	d := newDam(t, p, pgstore.Config{MaxInFlight: 1})
	asks := []<-chan error{d.send(mete.Mode{})}
	d.are(0, 1)
	var keys []string
	for i := range store.MaxCharges {
		keys = append(keys, fmt.Sprintf("m%03d", i))
	}
	var all sync.WaitGroup
	for i := range pgstore.DefaultMaxBatch {
		charges := of(d.limit, 1, fmt.Sprintf("n%03d", i))
		if i%16 == 15 {
			charges = of(d.limit, 1, keys...)
		}
		all.Go(func() {
			if snaps, allowed, err := d.store.Take(context.Background(), nil, charges, mete.Mode{}); err != nil || !allowed || len(snaps) != len(charges) {
				t.Errorf("%d charges: %d snapshots, allowed %v, %v", len(charges), len(snaps), allowed, err)
			}
		})
	}
	d.are(pgstore.DefaultMaxBatch, 1)
	calls := d.store.Stats().Calls
	d.release()
	all.Wait()
	d.answered(asks...)
	if got := d.store.Stats().Calls - calls; got > 2 {
		t.Errorf("%d calls, want one for what stood still, and one for all else", got)
	}
	holds(t, d.store, keys[0], d.limit, (1000-pgstore.DefaultMaxBatch/16)*bucket.Token)
	holds(t, d.store, "n000", d.limit, 999*bucket.Token)
}

// TestTake_AllocatesLittle counts the allocations of a take in a call of its own.
func TestTake_AllocatesLittle(t *testing.T) {
	pool := newPool(t)
	s := open(t, pool, pgstore.Config{Schema: migrated(t, pool), SweepEvery: -1, Timeout: awhile})
	charges := of(tokens(t, 1_000_000, "1/1s"), 1, "k")
	var snaps []bucket.Snapshot
	const most = 60 // two dozen come from a context with a deadline, and from pgx
	if got := testing.AllocsPerRun(200, func() {
		var err error
		if snaps, _, err = s.Take(context.Background(), snaps[:0], charges, mete.Mode{}); err != nil {
			t.Error(err)
		}
	}); got > most {
		t.Errorf("%v allocations, want at most %d", got, most)
	}
}
