// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

const sharedBucket = `{"rules": [
	{"name": "writes", "bucket": "api", "limit_keys": ["user"], "match": {"method": "POST"}, "rate": "10/1h", "fixed_cost": 5},
	{"name": "reads", "bucket": "api"},
	{"name": "all", "limit_keys": [], "rate": "4/1h"}]}`

func of(user, method string) mete.Attrs { return mete.Attrs{"user": user, "method": method} }

// Rules with one bucket spend the same tokens, and a decision names the rule that decided. A denial by the bucket
// charges no other limit.
func TestSharedBucket(t *testing.T) {
	r := newRig(t, sharedBucket)
	for _, step := range []struct {
		user, method string
		denied       string // the rule; "" is allowed
		retry        time.Duration
		left, all    int64
	}{
		{"ann", "POST", "", 0, 5, 3},
		{"ann", "GET", "", 0, 4, 2},
		{"ann", "POST", "writes", 6 * time.Minute, 4, 2},
		{"bob", "POST", "", 0, 5, 1},
		{"ann", "GET", "", 0, 3, 0},
		{"bob", "POST", "all", 0, 5, 0},
	} {
		d := r.take(of(step.user, step.method))
		denied := ""
		if !d.Allowed {
			denied = d.Rule
		}
		if denied != step.denied || step.retry > 0 && d.RetryAfter != step.retry || !d.Allowed && d.Reason != "token_bucket_exceeded" {
			t.Errorf("%s by %s: denied by %q (%s), retry after %v, want %q, %v", step.method, step.user, denied, d.Reason, d.RetryAfter, step.denied, step.retry)
		}
		r.holds(of(step.user, "GET"), step.left, step.all)
		r.holds(of(step.user, "POST"), step.left, step.all)
	}
	if err := r.Reset(t.Context(), mete.Request{Attributes: of("ann", "GET")}); err != nil {
		t.Fatal(err)
	}
	r.holds(of("ann", "POST"), 10, 4)
}

// A reset of one of the rules resets their bucket.
func TestSharedBucket_ResetRule(t *testing.T) {
	r := newRig(t, sharedBucket)
	r.take(of("ann", "POST"))
	for from := ""; ; {
		_, next, err := r.ResetRule(t.Context(), "reads", from)
		if err != nil {
			t.Fatal(err)
		}
		if from = next; next == "" {
			break
		}
	}
	r.holds(of("ann", "POST"), 10, 3)
}

// The parts of one request charge a shared bucket once, with the sum of their costs.
func TestSharedBucket_Parts(t *testing.T) {
	r := newRig(t, sharedBucket)
	d, err := r.Take(t.Context(), mete.Request{Parts: []mete.Part{{Attributes: of("ann", "POST")}, {Attributes: of("ann", "GET")}, {Attributes: of("ann", "GET")}}})
	if err != nil || !d.Allowed || len(d.Limits()) != 2 || d.Limits()[0].Room() != 3*bucket.Token || d.Limits()[1].Room() != bucket.Token {
		t.Errorf("%+v, %v: want 7 and 3 tokens", d, err)
	}
}
