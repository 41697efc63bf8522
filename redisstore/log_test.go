// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// TestLog_Long fills a sliding log to its maximum number of entries, and beyond.
func TestLog_Long(t *testing.T) {
	t.Parallel()
	l, _, err := bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.Rate{Tokens: bucket.MaxLogTokens, Per: time.Second}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	clock := storetest.NewClock()
	client := connect(t, proctest.StartRedis(t).Addr)
	s, err := redisstore.New(client, redisstore.Config{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	model := storetest.NewModel(clock.Now)
	take := func(cost bucket.Tokens, mode mete.Mode) {
		t.Helper()
		c := []store.Charge{{Key: "k", Limit: l, Cost: cost}}
		got, allowed, err := s.Take(t.Context(), nil, c, mode)
		want, wantAllowed, _ := model.Take(t.Context(), nil, c, mode)
		if err != nil || allowed != wantAllowed || !slices.Equal(got, want) {
			t.Fatalf("taking %v at %d: %v, %+v, %v; want %v, %+v", cost, clock.Now(), allowed, got, err, wantAllowed, want)
		}
	}
	for range bucket.MaxLogEntries + 20 {
		clock.Advance(10)
		take(1, mete.Mode{})
	}
	all := l.Capacity()
	for rest := range bucket.Tokens(25) { // with so few tokens left
		take(all-rest, mete.Mode{DryRun: true})
	}
	take(all, mete.Mode{})
	for range 20 { // entries expire one after another
		clock.Advance(93_000)
		take(all/2, mete.Mode{DryRun: true})
		take(all-3000, mete.Mode{DryRun: true})
		if err := s.Refund(t.Context(), storetest.Refunds(store.Charge{Key: "k", Limit: l, Cost: 7}), ""); err != nil {
			t.Fatal(err)
		}
		if err := model.Refund(t.Context(), storetest.Refunds(store.Charge{Key: "k", Limit: l, Cost: 7}), ""); err != nil {
			t.Fatal(err)
		}
		take(10, mete.Mode{})
	}
	size, err := client.Do(t.Context(), client.B().Strlen().Key("tb:k").Build()).AsInt64()
	if err != nil || size > 2000 {
		t.Errorf("%d bytes are kept of a log of 20 entries, %v", size, err)
	}
}

// TestLog_OfAnotherAlgorithm refunds a bucket after its limit became a log: the row is still well-formed.
func TestLog_OfAnotherAlgorithm(t *testing.T) {
	client := connect(t, proctest.StartRedis(t).Addr)
	s, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	c := []store.Charge{{Key: "k", Limit: kinds(t)["token bucket"], Cost: 4 * bucket.Token}}
	if _, allowed, err := s.Take(t.Context(), nil, c, mete.Mode{}); err != nil || !allowed {
		t.Fatalf("allowed %v, %v", allowed, err)
	}
	c[0].Limit, c[0].Cost = kinds(t)["sliding log"], bucket.Token
	if err := s.Refund(t.Context(), storetest.Refunds(c...), ""); err != nil {
		t.Fatal(err)
	}
	snaps, _, err := s.Take(t.Context(), nil, c, mete.Mode{})
	most := bucket.Token + 1 + bucket.Tokens(time.Since(began).Milliseconds()/2) // half a token per second has refilled
	if err != nil || snaps[0].Remaining() < bucket.Token || snaps[0].Remaining() > most {
		t.Errorf("%v, %v remain, want 1 to %v", err, snaps[0].Remaining(), most)
	}
	livesFor(t, client, "tb:k", snaps[0].FullAfter())
}
