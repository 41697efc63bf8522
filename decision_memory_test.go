// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

// Two enforced rules and two shadow rules.
const twoAndTwo = `{"rules": [
	{"name": "user", "group": "a", "limit_keys": ["header:x-user"], "on_store_error": "local", "algorithm_config": {"rate": "1/1h", "burst": 5}},
	{"name": "trial user", "group": "b", "limit_keys": ["header:x-user"], "mode": "shadow", "algorithm_config": {"rate": "1/1h", "burst": 3}},
	{"name": "global", "group": "c", "limit_keys": [], "algorithm_config": {"rate": "1/1h", "burst": 1000}},
	{"name": "trial", "group": "d", "limit_keys": [], "mode": "shadow", "algorithm_config": {"rate": "1/1h", "burst": 20}}]}`

// A limiter allocates memory for several decisions at once. Keeping a decision, or appending to its limits,
// changes no other.
func TestDecisions_ShareNoMemory(t *testing.T) {
	clock := storetest.NewClock()
	line := &wire{Store: storetest.NewModel(clock.Now)}
	l, err := mete.New(line, load(t, twoAndTwo), mete.Config{Local: storetest.NewModel(clock.Now), Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	methods := []func(context.Context, mete.Request) (mete.Decision, error){
		l.Take, l.Peek, l.TakeUpTo, l.Charge,
		func(ctx context.Context, req mete.Request) (mete.Decision, error) {
			r, err := l.Reserve(ctx, req)
			if err != nil {
				return mete.Decision{}, err
			}
			return r.Decision, nil
		},
	}
	own := limit(t, 3, "1/1h")
	var kept []mete.Decision
	var first []string
	for i := range 300 {
		user := fmt.Sprint("user ", i%60)
		req := mete.Request{Attributes: mete.Attrs{"header:x-user": user}}
		for j := range i % 3 {
			req.Charges = append(req.Charges, mete.Charge{Key: fmt.Sprint("own ", i%60, j), Limit: own, Cost: 1})
		}
		if i%4 == 3 {
			req.Charges = append(req.Charges, mete.Charge{Key: "global:", Limit: l.Policy().Rules()[2].Limits[0].Bucket, Cost: 1})
		}
		if i == 200 {
			line.cut(down)
		}
		d, err := methods[i%len(methods)](t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		kept, first = append(kept, d), append(first, everything(&d))
	}
	foreign := mete.Status{Rule: &policy.Rule{Name: "foreign"}, Limit: &policy.Limit{}, Key: "foreign"}
	for i := range kept {
		d := &kept[i]
		for range 4 {
			_, _ = append(d.Limits(), foreign), append(d.Shadow, foreign)
		}
	}
	for i := range kept {
		if now := everything(&kept[i]); now != first[i] {
			t.Fatalf("decision %d was\n%s\nand is now\n%s", i, first[i], now)
		}
	}
}

// everything returns the text of a decision with its bucket keys.
func everything(d *mete.Decision) string {
	var b strings.Builder
	fmt.Fprintln(&b, d.Allowed, d.Rule, d.Reason, d.RetryAfter, d.Wait, d.Taken, d.Degraded)
	for _, list := range [][]mete.Status{d.Limits(), d.Shadow} {
		for _, s := range list {
			fmt.Fprintf(&b, "%s %s %q %+v\n", s.Rule.Name, s.Limit.Name, s.Key, s.Snapshot)
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}
