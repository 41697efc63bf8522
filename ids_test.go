// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

// A retry is recognized under another scale: clients retry while the protected service is overloaded.
func TestID_ScaledOtherwise(t *testing.T) {
	factor := bucket.Tokens(1)
	l, err := mete.New(storetest.NewModel(storetest.NewClock().Now), nil, mete.Config{
		Scale: func(cost bucket.Tokens) bucket.Tokens { return cost * factor },
	})
	if err != nil {
		t.Fatal(err)
	}
	req := mete.Request{ID: "7f3a", Charges: []mete.Charge{{Key: "k", Limit: limit(t, 10, "1/1h"), Cost: 1}}}
	for range 4 {
		d, err := l.Take(t.Context(), req)
		if err != nil || !d.Allowed || d.Limits()[0].Remaining() != 9*bucket.Token {
			t.Fatalf("at factor %d: %+v, error %v; want the first answer again: 9 left", factor, d, err)
		}
		factor++
	}
}

// A partial take is not the answer to a full take, and neither is a take with another cost.
func TestID_AskedForSomethingElse(t *testing.T) {
	for name, shards := range map[string]int{"one bucket": 0, "shards": 4} {
		t.Run(name, func(t *testing.T) {
			l, err := mete.New(storetest.NewModel(storetest.NewClock().Now), nil, mete.Config{})
			if err != nil {
				t.Fatal(err)
			}
			req := mete.Request{ID: "7f3a", Charges: []mete.Charge{{Key: "k", Limit: limit(t, 20, "1/1h"), Cost: 90, Shards: shards}}}
			if d, err := l.TakeUpTo(t.Context(), req); err != nil || d.Taken != 20*bucket.Token {
				t.Fatalf("up to 90 of 20: %+v, error %v", d, err)
			}
			if d, err := l.Take(t.Context(), req); err != nil || d.Allowed {
				t.Errorf("90 of 0 under the same ID: %+v, error %v; want denied", d, err)
			}
			req.Charges[0].Cost = 1
			if d, err := l.TakeUpTo(t.Context(), req); err != nil || d.Allowed {
				t.Errorf("up to 1 of 0 under the same ID: %+v, error %v; want denied", d, err)
			}
		})
	}
}

// A take is charged once regardless of the order of its charges, because a Go map iterates in another order
// each time. Stores and local buckets agree.
func TestID_OrderOfChargesIsNoPartOfIt(t *testing.T) {
	for name, shards := range map[string]int{"one bucket": 0, "shards": 4} {
		t.Run(name, func(t *testing.T) {
			onEachKindOfStore(t, func(t *testing.T, l *mete.Limiter) {
				ten := limit(t, 10, "1/1h")
				a := mete.Charge{Key: "a", Limit: ten, Cost: 1, Shards: shards}
				b := mete.Charge{Key: "b", Limit: ten, Cost: 2, Shards: shards}
				c := mete.Charge{Key: "c", Limit: ten, Cost: 3}
				for _, order := range [][]mete.Charge{{a, b, c}, {a, c, b}, {b, a, c}, {b, c, a}, {c, a, b}, {c, b, a}} {
					d, err := l.Take(t.Context(), mete.Request{ID: "x", Charges: order})
					if err != nil || !d.Allowed {
						t.Fatalf("order %s%s%s: %+v, error %v; want admitted", order[0].Key, order[1].Key, order[2].Key, d, err)
					}
				}
				holds(t, l, a, 9)
				holds(t, l, b, 8)
				holds(t, l, c, 7)
			})
		})
	}
}

// Each of these requests differs from the first in one point, so none gets its answer.
func TestID_AnotherQuestionIsCharged(t *testing.T) {
	ten := limit(t, 10, "1/1h")
	a := func(tokens mete.Tokens) mete.Charge {
		return mete.Charge{Key: "a", Limit: ten, Cost: tokens}
	}
	b := func(tokens mete.Tokens) mete.Charge {
		return mete.Charge{Key: "b", Limit: ten, Cost: tokens}
	}
	for name, tt := range map[string]struct {
		charges []mete.Charge
		take    func(*mete.Limiter, context.Context, mete.Request) (mete.Decision, error)
		a, b    bucket.Tokens // what is left
	}{
		"the costs of two keys swapped": {[]mete.Charge{b(1), a(2)}, (*mete.Limiter).Take, 7, 7},
		"another cost":                  {[]mete.Charge{a(1), b(3)}, (*mete.Limiter).Take, 8, 5},
		"one key less":                  {[]mete.Charge{a(1)}, (*mete.Limiter).Take, 8, 8},
		"a part will do":                {[]mete.Charge{a(1), b(2)}, (*mete.Limiter).TakeUpTo, 8, 6},
		"as a debt":                     {[]mete.Charge{a(1), b(2)}, (*mete.Limiter).Charge, 8, 6},
		"also later":                    {[]mete.Charge{a(1), b(2)}, takeLater, 8, 6},
	} {
		t.Run(name, func(t *testing.T) {
			onEachKindOfStore(t, func(t *testing.T, l *mete.Limiter) {
				if d, err := l.Take(t.Context(), mete.Request{ID: "y", Charges: []mete.Charge{a(1), b(2)}}); err != nil || !d.Allowed {
					t.Fatalf("the first take: %+v, error %v", d, err)
				}
				for range 2 { // it is charged, and once
					if d, err := tt.take(l, t.Context(), mete.Request{ID: "y", Charges: tt.charges}); err != nil || !d.Allowed {
						t.Fatalf("the other question: %+v, error %v", d, err)
					}
				}
				holds(t, l, a(0), tt.a)
				holds(t, l, b(0), tt.b)
			})
		})
	}
}

// A waiting caller has less time left in each attempt, and still makes the same request.
func TestID_ShorterWaitIsTheSameQuestion(t *testing.T) {
	onEachKindOfStore(t, func(t *testing.T, l *mete.Limiter) {
		a := mete.Charge{Key: "a", Limit: limit(t, 10, "1/1h"), Cost: 1}
		for _, wait := range []time.Duration{time.Minute, 30 * time.Second, time.Nanosecond} {
			d, err := l.Take(t.Context(), mete.Request{ID: "z", MaxWait: wait, Charges: []mete.Charge{a}})
			if err != nil || !d.Allowed {
				t.Fatalf("within %v: %+v, error %v", wait, d, err)
			}
		}
		holds(t, l, a, 9)
	})
}

// A reload between two attempts changes neither keys nor costs, so the retry is not charged. A new limit does
// not matter.
func TestID_SurvivesAReload(t *testing.T) {
	const (
		user = `{"name": "user", "group": "u", "limit_keys": ["user"], "algorithm_config": {"rate": "1/1h", "burst": 10, "fixed_cost": 2}}`
		all  = `{"name": "all", "group": "a", "limit_keys": [], "algorithm_config": {"rate": "1/1h", "burst": 20}}`
		more = `{"name": "all", "group": "a", "limit_keys": [], "algorithm_config": {"rate": "1/1h", "burst": 30}}`
	)
	factor := bucket.Tokens(1)
	l, err := mete.New(storetest.NewModel(storetest.NewClock().Now), load(t, `{"rules": [`+user+`,`+all+`]}`), mete.Config{
		Scale: func(cost bucket.Tokens) bucket.Tokens { return cost * factor },
	})
	if err != nil {
		t.Fatal(err)
	}
	req := mete.Request{ID: "r", Attributes: mete.Attrs{"user": "u1"}}
	for i, rules := range []string{user + `,` + all, all + `,` + user, more + `,` + user} {
		if err := l.SetPolicy(load(t, `{"rules": [`+rules+`]}`)); err != nil {
			t.Fatal(err)
		}
		if d, err := l.Take(t.Context(), req); err != nil || !d.Allowed {
			t.Fatalf("attempt %d: %+v, error %v", i+1, d, err)
		}
		factor++
	}
	factor = 1
	if err := l.SetPolicy(load(t, `{"rules": [`+user+`,`+all+`]}`)); err != nil {
		t.Fatal(err)
	}
	d, err := l.Peek(t.Context(), mete.Request{Attributes: req.Attributes})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range d.Limits() {
		if want := map[string]bucket.Tokens{"user": 8, "all": 19}[s.Rule.Name] * bucket.Token; s.Remaining() != want {
			t.Errorf("%s has %v left, want %v", s.Rule.Name, s.Remaining(), want)
		}
	}
}

func takeLater(l *mete.Limiter, ctx context.Context, req mete.Request) (mete.Decision, error) {
	req.MaxWait = time.Minute
	return l.Take(ctx, req)
}

// onEachKindOfStore runs f with a store and with local buckets.
func onEachKindOfStore(t *testing.T, f func(*testing.T, *mete.Limiter)) {
	for name, fault := range map[string]fault{"store": up, "local": down} {
		t.Run(name, func(t *testing.T) {
			clock := storetest.NewClock()
			line := &wire{Store: storetest.NewModel(clock.Now)}
			l, err := mete.New(line, nil, mete.Config{OnStoreError: policy.OnStoreErrorLocal, Local: storetest.NewModel(clock.Now), Now: clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			line.cut(fault)
			f(t, l)
		})
	}
}

// holds asserts the content of the bucket of a charge.
func holds(t *testing.T, l *mete.Limiter, c mete.Charge, want bucket.Tokens) {
	t.Helper()
	c.Cost = 0
	d, err := l.Peek(t.Context(), mete.Request{Charges: []mete.Charge{c}})
	if err != nil || len(d.Limits()) != 1 {
		t.Fatalf("peek at %s: %+v, error %v", c.Key, d, err)
	}
	if got := d.Limits()[0].Remaining(); got != want*bucket.Token {
		t.Errorf("%s has %v left, want %v", c.Key, got, want*bucket.Token)
	}
}
