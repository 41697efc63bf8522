// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/storetest"
)

// describe lists the buckets of a denial with their results.
func describe(d *mete.Denial) string {
	show := func(statuses []mete.Status) string {
		var parts []string
		for _, s := range statuses {
			parts = append(parts, fmt.Sprintf("%s=%v", s.Key, s.Allowed))
		}
		return strings.Join(parts, " ")
	}
	return fmt.Sprintf("%v %q %s [%s] [%s]", d.Allowed, d.Rule, d.Reason, show(d.Limits()), show(d.Shadow))
}

func TestOnDenial_ShowsWhoWasDenied(t *testing.T) {
	const shadowed = `{"rules": [
		{"name": "trial", "mode": "shadow", "limit_keys": ["ip:address"], "group": "t", "algorithm_config": {"rate": "1/1h", "burst": 1}},
		{"name": "user", "limit_keys": ["path"], "algorithm_config": {"rate": "1/1h", "burst": 2}},
		{"name": "strict", "limit_keys": ["query:x"], "match": {"method": "PUT"}, "on_missing": "deny", "algorithm_config": {"rate": "1/1h", "burst": 9}}]}`
	var seen []string
	clock := storetest.NewClock()
	l, err := mete.New(storetest.NewModel(clock.Now), load(t, shadowed), mete.Config{OnDenial: func(_ context.Context, d *mete.Denial) {
		seen = append(seen, describe(d))
	}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(attrs mete.Attrs) {
		req := mete.Request{Attributes: attrs}
		l.Peek(t.Context(), req)
		l.Take(t.Context(), req)
	}
	one := mete.Attrs{"ip:address": "192.0.2.1", "path": "/a"}
	for range 3 {
		ask(one)
	}
	ask(mete.Attrs{"method": "PUT"})
	want := []string{
		`true "user"  [user:path=/a=true] [trial:ip=192.0.2.1=false]`,
		`false "user" token_bucket_exceeded [user:path=/a=false] []`,
		`false "strict" missing_attribute [] []`,
	}
	if !slices.Equal(seen, want) {
		t.Errorf("the hook saw\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
}

// Of five tokens, a fifth is left after the fourth take, and none after the fifth. A queue counts as capacity.
func TestOnNearLimit(t *testing.T) {
	const rules = `{"rules": [
		{"name": "trial", "mode": "shadow", "limit_keys": ["ip:address"], "group": "t", "algorithm_config": {"rate": "1/1h", "burst": 3}},
		{"name": "user", "limit_keys": ["path"], "algorithm_config": {"rate": "1/1h", "burst": 5}},
		{"name": "queue", "limit_keys": ["host"], "algorithm": "leaky_bucket", "algorithm_config": {"rate": "1/1h", "queue": 9}}]}`
	var seen []string
	clock := storetest.NewClock()
	note := func(what string) func(context.Context, *mete.Denial) {
		return func(_ context.Context, d *mete.Denial) {
			var near []string
			for i := range d.Limits() {
				if d.Limits()[i].Near() {
					near = append(near, d.Limits()[i].Key)
				}
			}
			seen = append(seen, fmt.Sprint(what, " ", d.Allowed, " ", near))
		}
	}
	l, err := mete.New(storetest.NewModel(clock.Now), load(t, rules), mete.Config{OnDenial: note("denied"), OnNearLimit: note("near")})
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		l.Peek(t.Context(), mete.Request{Attributes: mete.Attrs{"ip:address": "192.0.2.1", "path": "/a"}})
		l.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"ip:address": "192.0.2.1", "path": "/a"}})
	}
	for range 9 {
		l.Reserve(t.Context(), mete.Request{Attributes: mete.Attrs{"host": "h"}, MaxWait: 24 * time.Hour})
	}
	want := []string{
		"denied true [user:path=/a]", "near true [user:path=/a]", // the fourth is denied in shadow
		"denied true [user:path=/a]", "near true [user:path=/a]",
		"denied false []",
		"near true [queue:host=h]", "near true [queue:host=h]",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("the hooks saw\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
}

// The request's own charges follow the policy's limits, with their own keys.
func TestOnDenial_Charges(t *testing.T) {
	var seen []string
	l, err := mete.New(storetest.NewModel(storetest.NewClock().Now), load(t, nested), mete.Config{OnDenial: func(_ context.Context, d *mete.Denial) {
		if _, ok := d.Attributes.Lookup(load(t, nested).Rules()[0].LimitKeys[0]); ok {
			t.Error("a request without attributes has some")
		}
		seen = append(seen, describe(d))
	}})
	if err != nil {
		t.Fatal(err)
	}
	big, small := limit(t, 100, "1/1h"), limit(t, 1, "1/1h")
	l.Take(t.Context(), mete.Request{Charges: []mete.Charge{{Key: "z", Limit: big, Cost: 1}, {Key: "a", Limit: small, Cost: 2}}})
	if want := []string{`false "" token_bucket_exceeded [global:=true z=true a=false] []`}; !slices.Equal(seen, want) {
		t.Errorf("the hook saw %q, want %q", seen, want)
	}
}

// After a store error, a denial contains only the local buckets.
func TestOnDenial_Degraded(t *testing.T) {
	const rules = `{"rules": [
		{"name": "open", "limit_keys": ["header:x"], "algorithm_config": {"rate": "1/1h", "burst": 1}},
		{"name": "local", "limit_keys": ["path"], "on_store_error": "local", "algorithm_config": {"rate": "1/1h", "burst": 1}},
		{"name": "closed", "limit_keys": ["method"], "on_store_error": "closed", "algorithm_config": {"rate": "1/1h", "burst": 1}}]}`
	var seen []string
	l, err := mete.New(brokenStore{errors.New("gone")}, load(t, rules), mete.Config{
		Local:    storetest.NewModel(storetest.NewClock().Now),
		OnDenial: func(_ context.Context, d *mete.Denial) { seen = append(seen, describe(d)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"header:x": "1", "path": "/"}})
	}
	l.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"method": "GET", "path": "/"}})
	want := []string{
		`false "local" token_bucket_exceeded [local:path=/=false] []`,
		`false "closed" store_error [] []`,
	}
	if !slices.Equal(seen, want) {
		t.Errorf("the hook saw %q, want %q", seen, want)
	}
}

func TestOnDenial_EveryMethodOnce(t *testing.T) {
	var seen []string
	order := ""
	r := newBare(t, mete.Config{
		OnDecision: func(context.Context, *mete.Decision) { order += "d" },
		OnDenial: func(_ context.Context, d *mete.Denial) {
			order += "D"
			seen = append(seen, describe(d))
		},
	})
	l := limit(t, 1, "1/1h")
	for name, f := range map[string]func(context.Context, mete.Request) (mete.Decision, error){
		"take": r.Take, "take up to": r.TakeUpTo, "wait": r.Wait, "peek": r.Peek,
		"reserve": func(ctx context.Context, req mete.Request) (mete.Decision, error) {
			res, err := r.Reserve(ctx, req)
			return res.Decision, err
		},
	} {
		r.Reset(t.Context(), one("k", l, 0))
		seen, order = nil, ""
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		f(ctx, one("k", l, whole))
		f(ctx, one("k", l, whole))
		cancel()
		wantOrder, want := "ddD", `[false "" token_bucket_exceeded [k=false] []]`
		if name == "peek" {
			wantOrder, want = "", "[]"
		}
		if fmt.Sprint(seen) != want || order != wantOrder {
			t.Errorf("%s: the hooks saw %v in the order %q, want %s, %q", name, seen, order, want, wantOrder)
		}
	}
}

// The hook costs nothing for allowed requests, and does not allocate for denied ones.
func TestOnDenial_AllocatesNothing(t *testing.T) {
	measure := func(hook func(context.Context, *mete.Denial), attrs mete.Attrs) float64 {
		store, err := memstore.New(memstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		l, err := mete.New(store, load(t, `{"rules": [
			{"name": "user", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 1, "burst": 1000000000}},
			{"name": "path", "limit_keys": ["path"], "algorithm_config": {"rate": "1/1h", "burst": 1}}]}`), mete.Config{OnDenial: hook})
		if err != nil {
			t.Fatal(err)
		}
		req := mete.Request{Attributes: attrs}
		least := math.Inf(1) // the race detector empties pools at random
		for range 50 {
			least = min(least, testing.AllocsPerRun(1, func() { l.Take(t.Context(), req) }))
		}
		return least
	}
	for name, attrs := range map[string]mete.Attrs{
		"allowed": {"header:x-user": "alice"}, "denied": {"header:x-user": "alice", "path": "/"},
	} {
		called := 0
		without, with := measure(nil, attrs), measure(func(context.Context, *mete.Denial) { called++ }, attrs)
		if without != with {
			t.Errorf("%s: %v allocations with the hook, want %v as without", name, with, without)
		}
		if (called > 0) != (name == "denied") {
			t.Errorf("%s: the hook was called %d times", name, called)
		}
	}
}

// G12: the log value of a denial contains no keys.
func TestDenial_LogsNoKeys(t *testing.T) {
	logger, out := newLogger(slog.LevelDebug)
	l, err := mete.New(storetest.NewModel(storetest.NewClock().Now), load(t, nested), mete.Config{OnDenial: func(_ context.Context, d *mete.Denial) {
		logger.Info("denied", "pointer", d, "value", *d)
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		l.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"header:x-user": "alice"}})
	}
	if text := out.String(); strings.Contains(text, "alice") || !strings.Contains(text, "value.rule=global") {
		t.Errorf("logged %q, want the decision alone", text)
	}
}
