// SPDX-License-Identifier: Apache-2.0

package policyfile_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/policyfile"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

const examplesDir = "../../../examples/policies"

// A volley is many requests at one instant.
type volley struct {
	attrs    mete.Attrs
	requests int
	allowed  int
	rule     string // that denies the rest
}

// examples are the files in examples/policies, and what their comments say.
var examples = map[string][]volley{
	"tiers.yaml": {
		{mete.Attrs{"header:x-api-key": "e", "jwt:plan": "enterprise"}, 2100, 2000, "enterprise"},
		{mete.Attrs{"header:x-api-key": "t", "jwt:plan": "team"}, 150, 100, "paid"},
		{mete.Attrs{"header:x-api-key": "s", "jwt:plan": "starter"}, 150, 100, "paid"},
		{mete.Attrs{"header:x-api-key": "f", "jwt:plan": "trial"}, 50, 20, "free"},
		{mete.Attrs{"header:x-api-key": "g", "ip:address": "192.0.2.1"}, 50, 20, "free"},
		{mete.Attrs{"ip:address": "192.0.2.1"}, 50, 10, "anonymous"},
	},
	"nested.yaml": {
		{mete.Attrs{"header:x-tenant": "a", "header:x-user": "u1"}, 30, 10, "user"},
		{mete.Attrs{"header:x-tenant": "b", "header:x-user": "u1"}, 30, 10, "user"},
		// What u1 was denied cost the tenant nothing: 30 of its 40 are left.
		{mete.Attrs{"header:x-tenant": "a", "header:x-user": "u2"}, 30, 10, "user"},
		{mete.Attrs{"header:x-tenant": "a", "header:x-user": "u3"}, 10, 10, ""},
		{mete.Attrs{"header:x-tenant": "a", "header:x-user": "u4"}, 10, 10, ""},
		{mete.Attrs{"header:x-tenant": "a", "header:x-user": "u5"}, 10, 0, "tenant"},
		{mete.Attrs{"header:x-user": "u6"}, 10, 0, "tenant"},
	},
	"weighted.yaml": {
		{completion("k1", "100"), 100, 60, "model"},
		{completion("k2", "8000"), 10, 3, "model"},
		{completion("k3", "1000000"), 10, 3, "model"}, // as 8,000
		{completion("k4", "0.001"), 100, 60, "model"}, // as 100: 6,000 of 30,000
		{completion("k5", "none"), 100, 30, "model"},  // as 1,000
		{mete.Attrs{"header:x-api-key": "k1", "path": "/", "method": "GET"}, 100, 100, ""},
	},
	"token_bucket.yaml": {
		{to("/api/x", "k1"), 60, 50, "api"},
		{to("/reports/x", "k1"), 700, 600, "credit"},
		{to("/messages", "k1"), 5, 1, "cooldown"},
		{to("/device", "k1"), 5, 1, "pace"},
	},
	"interval.yaml": {
		{mete.Attrs{"header:x-user": "u1"}, 30, 20, "quantum"},
	},
	"fixed_window.yaml": {
		{mete.Attrs{"header:x-api-key": "k1"}, 30, 20, "plan"},
		{mete.Attrs{"header:x-api-key": "k2", "header:x-user": "u1", "path": "/export"}, 10, 9, "exports"},
	},
	"sliding_window.yaml": {
		{mete.Attrs{"ip:address": "192.0.2.1"}, 150, 100, "search"},
	},
	"sliding_log.yaml": {
		{mete.Attrs{"header:x-account": "a", "path": "/login", "method": "POST"}, 9, 5, "login"},
		{mete.Attrs{"header:x-account": "b", "path": "/login", "method": "GET"}, 9, 9, ""},
	},
	"leaky_bucket.yaml": {
		{mete.Attrs{"ip:address": "192.0.2.1"}, 5, 4, "client"},
		{mete.Attrs{"ip:address": "192.0.2.2"}, 3, 2, "backend"}, // 1 goes ahead, 5 wait
	},
	"shards.yaml": {
		{nil, 100_001, 100_000, "everyone"},
	},
	"remote_store.yaml": {
		{mete.Attrs{"header:x-tenant": "a", "header:x-user": "u1"}, 60, 40, "user"},
		{mete.Attrs{"header:x-tenant": "a"}, 2000, 1960, "tenant"},
	},
	"shadow.yaml": {
		{mete.Attrs{"ip:address": "192.0.2.1"}, 60, 50, "lenient"},
	},
}

func to(path, key string) mete.Attrs { return mete.Attrs{"path": path, "header:x-api-key": key} }

func completion(key, cost string) mete.Attrs {
	return mete.Attrs{"header:x-api-key": key, "header:x-max-tokens": cost, "path": "/v1/completions", "method": "POST"}
}

func TestExamples_DoWhatTheySay(t *testing.T) {
	for name, volleys := range examples {
		t.Run(name, func(t *testing.T) {
			limiter := exampleLimiter(t, name)
			for _, v := range volleys {
				allowed, rule := v.fire(t, limiter)
				if allowed != v.allowed || rule != v.rule {
					t.Errorf("%v: allowed %d of %d, then denied by %q, want %d and %q", v.attrs, allowed, v.requests, rule, v.allowed, v.rule)
				}
			}
		})
	}
}

func TestExamples_AreAllTested(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(examplesDir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files in %s: %v, %v", examplesDir, files, err)
	}
	for _, f := range files {
		if _, ok := examples[filepath.Base(f)]; !ok {
			t.Errorf("%s: no test says what it does", f)
		}
	}
}

// The rule in shadow sees what the one in force lets through, and would have
// denied some of it.
func TestExamples_ShadowIsSeen(t *testing.T) {
	limiter := exampleLimiter(t, "shadow.yaml")
	var denied []bool
	for range 8 {
		d, err := limiter.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"ip:address": "192.0.2.1"}})
		if err != nil || !d.Allowed || len(d.Shadow) != 1 {
			t.Fatalf("decision %+v, %v, want one that is allowed and has a shadow", d, err)
		}
		denied = append(denied, !d.Shadow[0].Allowed)
	}
	if want := []bool{false, false, false, false, false, true, true, true}; !slices.Equal(denied, want) {
		t.Errorf("the rule in shadow would have denied %v, want %v", denied, want)
	}
}

// Who has to wait for the leaky bucket is told for how long: one after the other.
func TestExamples_LeakyBucketSpaces(t *testing.T) {
	limiter := exampleLimiter(t, "leaky_bucket.yaml")
	for i := range 6 {
		d, err := limiter.Take(t.Context(), mete.Request{})
		if want := time.Duration(i) * 100 * time.Millisecond; err != nil || !d.Allowed || d.Wait != want {
			t.Errorf("request %d: allowed %t after %v, %v, want after %v", i+1, d.Allowed, d.Wait, err, want)
		}
	}
	d, err := limiter.Take(t.Context(), mete.Request{})
	if err != nil || d.Allowed || d.Reason != "leaky_bucket_exceeded" || d.RetryAfter != 100*time.Millisecond {
		t.Errorf("one too many: %+v, %v, want a denial for 100ms", d, err)
	}
}

// exampleLimiter decides by an example, on a clock that stands still.
func exampleLimiter(t *testing.T, name string) *mete.Limiter {
	t.Helper()
	matcher, err := policyfile.Load(filepath.Join(examplesDir, name), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{Now: func() bucket.Instant { return 1_800_000_000_000_000 }})
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := mete.New(store, matcher, mete.Config{Local: store}) // which does not fail
	if err != nil {
		t.Fatal(err)
	}
	return limiter
}

// fire returns how many requests were allowed, and the rule that denied the last.
func (v volley) fire(t *testing.T, limiter *mete.Limiter) (allowed int, rule string) {
	t.Helper()
	for range v.requests {
		d, err := limiter.Take(t.Context(), mete.Request{Attributes: v.attrs})
		switch {
		case err != nil:
			t.Fatal(err)
		case d.Allowed:
			allowed++
		default:
			rule = d.Rule
		}
	}
	return allowed, rule
}
