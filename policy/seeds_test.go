// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// The files in testdata/seeds are the JSON examples of the documents the
// language comes from, as they stand there.

// loadFile compiles a valid file.
func loadFile(t *testing.T, path string) *policy.Matcher {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := policy.Load(data, policy.Options{HashKey: []byte("test")})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return m
}

// want is the expectation of one match.
type want struct {
	rule     string
	capacity bucket.Tokens
	rps      bucket.Tokens
	cost     bucket.Tokens
}

// expect compares the limits that a request falls under with what they should be.
func expect(t *testing.T, m *policy.Matcher, attrs policy.Map, wants ...want) []policy.Match {
	t.Helper()
	got, missing := m.Match(nil, attrs, 0, 0)
	if missing.Missing != nil {
		t.Errorf("Match(%v): missing = %q, want none", attrs, missing.Missing.Name)
	}
	if len(got) != len(wants) {
		t.Fatalf("Match(%v) = %d limits, want %d", attrs, len(got), len(wants))
	}
	for i, w := range wants {
		limit, err := bucket.NewLimit(w.capacity, bucket.PerSecond(w.rps))
		if err != nil {
			t.Fatal(err)
		}
		if got[i].Rule.Name != w.rule || got[i].Limit.Bucket != limit || got[i].Cost != w.cost {
			t.Errorf("Match(%v)[%d] = rule %q, %v, cost %v; want %q, %v, cost %v", attrs, i,
				got[i].Rule.Name, got[i].Limit.Bucket, got[i].Cost, w.rule, limit, w.cost)
		}
	}
	return got
}

// The reference configuration: one bucket of 200 for all requests, 100 per second, one token per request.
func TestSeedReference(t *testing.T) {
	m := loadFile(t, "testdata/seeds/reference.json")
	w := want{"default", 200 * bucket.Token, 100 * bucket.Token, bucket.Token}
	a := expect(t, m, policy.Map{}, w)
	b := expect(t, m, policy.Map{"ip:address": "192.0.2.1"}, w)
	if a[0].Key != b[0].Key {
		t.Errorf("keys %q and %q differ, want one bucket for all", a[0].Key, b[0].Key)
	}
	if got := m.Rules()[0].Limits[0].Reason; got != "token_bucket_exceeded" {
		t.Errorf("Reason = %q", got)
	}
}

// "If X-Request-Weight: 5 is sent, 5 tokens are consumed. If the header is
// absent or contains a non-numeric value, default_cost (1) is used."
func TestSeedVariableCost(t *testing.T) {
	m := loadFile(t, "testdata/seeds/variable_cost.json")
	for value, cost := range map[string]bucket.Tokens{"5": 5000, "heavy": 1000, "": 1000} {
		expect(t, m, policy.Map{"header:x-request-weight": value}, want{"default", 1000 * bucket.Token, 100 * bucket.Token, cost})
	}
	expect(t, m, policy.Map{}, want{"default", 1000 * bucket.Token, 100 * bucket.Token, bucket.Token})
}

// "Each unique IP address gets its own 10-token bucket that refills at 5 tokens
// per second."
func TestSeedGlobalRPS(t *testing.T) {
	m := loadFile(t, "testdata/seeds/global_rps.json")
	w := want{"global-rps", 10 * bucket.Token, 5 * bucket.Token, bucket.Token}
	a := expect(t, m, policy.Map{"ip:address": "192.0.2.1"}, w)
	b := expect(t, m, policy.Map{"ip:address": "192.0.2.2"}, w)
	if a[0].Key == b[0].Key {
		t.Errorf("two addresses share the bucket %q", a[0].Key)
	}
}

// Tiers: an enterprise caller has only enterprise limits; all other callers have the free limits.
func TestSeedTiers(t *testing.T) {
	m := loadFile(t, "testdata/seeds/tiers.json")
	free := want{"free", 20 * bucket.Token, 10 * bucket.Token, bucket.Token}
	expect(t, m, policy.Map{"header:x-api-key": "k", "jwt:plan": "enterprise"},
		want{"enterprise", 2000 * bucket.Token, 1000 * bucket.Token, bucket.Token})
	expect(t, m, policy.Map{"header:x-api-key": "k", "jwt:plan": "pro"}, free)
	expect(t, m, policy.Map{"header:x-api-key": "k"}, free)
	expect(t, m, policy.Map{"jwt:plan": "enterprise"}) // no bucket is needed
}

// Every example has a test above.
func TestSeedsAllTested(t *testing.T) {
	files, err := filepath.Glob("testdata/seeds/*.json")
	if err != nil || len(files) != 4 {
		t.Errorf("testdata/seeds has %d files (%v), want the 4 tested here", len(files), err)
	}
}
