// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/lint"
)

// Errors in the documents that the language comes from, in words or in code. Tests of the limiter cover
// decisions, and tests of the endpoints cover responses.
func TestSourceMistakes(t *testing.T) {
	for _, tc := range []struct {
		mistake string
		check   func(t *testing.T)
	}{
		{"the free tier throttles the customers who pay", freeThrottlesPaying},
		{"rps is not what the limit is made of", rpsIsAnAlias},
		{"a cost above the burst is told to come back", costAboveBurst},
		{"a client names any price", anyPrice},
		{"a header's name has to be in lower case", headerCase},
		{"rules of one name in two policies share a bucket", bucketIdentity},
		{"two pairs of values are one key", joinedKeys},
		{"shadow ends the evaluation", shadowEndsNothing},
		{"a match on what is in no limit_keys never holds", matchBesideKeys},
		{"a query makes a path another", queryInPath},
		{"a pace below the burst is refused", paceIsALimit},
		{"weeks begin on Sundays, and on Mondays in the text", weekStart},
		{"unknown fields are ignored", unknownFields},
		{"examples are in another language than the files", otherWords},
		{"the cost of another period's budget helps", budgetAboveAll},
		{"jitter is not to be had", jitterIsAWord},
		{"the first limit that denies is the only one told", allLimitsMatch},
		{"rules that are not active are in force", inactive},
		{"two rules for all are both in force", twoForAll},
		{"a rate of nothing, and a burst below it", senselessNumbers},
		{"the rule for one path is for all of them", pathOfARule},
		{"every path has a bucket of its own", pathKeys},
		{"those without a name share a bucket", anonymous},
		{"an address is one of a million that its owner has", sites},
	} {
		t.Run(strings.ReplaceAll(tc.mistake, " ", "_"), tc.check)
	}
}

// fallsUnder are the rules that a request falls under.
func fallsUnder(t *testing.T, m *policy.Matcher, attrs policy.Map) string {
	t.Helper()
	matches, _ := m.Match(nil, attrs, 0, 0)
	var list []string
	for _, match := range matches {
		name := match.Rule.Name
		if match.Shadow {
			name += " (shadow)"
		}
		list = append(list, name)
	}
	return strings.Join(list, ", ")
}

// mustLoad compiles a whole file.
func mustLoad(t *testing.T, text string) *policy.Matcher {
	t.Helper()
	m, err := policy.Load([]byte(text), policy.Options{HashKey: []byte("test")})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

// wants compares the rules that requests fall under.
func wants(t *testing.T, m *policy.Matcher, want string, attrs policy.Map) {
	t.Helper()
	if got := fallsUnder(t, m, attrs); got != want {
		t.Errorf("%v falls under %q, want %q", attrs, got, want)
	}
}

func codes(m *policy.Matcher) string {
	var list []string
	for _, w := range lint.Check(m, time.Now()) {
		list = append(list, w.Code)
	}
	return strings.Join(list, " ")
}

// refused reports that a file is, and that the reason has a part.
func refused(t *testing.T, text, part string) {
	t.Helper()
	if _, err := policy.Load([]byte(text), policy.Options{}); err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("%s: error %v, want one with %q", text, err, part)
	}
}

func freeThrottlesPaying(t *testing.T) {
	m := loadFile(t, "testdata/seeds/tiers.json")
	wants(t, m, "enterprise", policy.Map{"header:x-api-key": "k", "jwt:plan": "enterprise"})
	wants(t, m, "free", policy.Map{"header:x-api-key": "k"})
	// In groups of their own, both rules apply.
	m = mustLoad(t, `{"rules": [
		{"name": "enterprise", "group": "a", "limit_keys": ["jwt:sub"], "match": {"jwt:plan": "enterprise"}, "algorithm_config": {"rps": 1000, "burst": 2000}},
		{"name": "free", "group": "b", "limit_keys": ["jwt:sub"], "algorithm_config": {"rps": 10, "burst": 20}}]}`)
	if got := codes(m); got != "catch-all-tier" {
		t.Errorf("warnings %q, want catch-all-tier", got)
	}
}

func rpsIsAnAlias(t *testing.T) {
	limit := func(word string) bucket.Limit {
		return load(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"`+word+`": 5, "burst": 10}}`).Rules()[0].Limits[0].Bucket
	}
	if a, b := limit("rps"), limit("tokens_per_second"); a != b || a.Capacity() != 10*bucket.Token {
		t.Errorf("rps makes %v, tokens_per_second %v", a, b)
	}
}

func costAboveBurst(t *testing.T) {
	refused(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 10, "burst": 100, "fixed_cost": 150}}`, "can never be admitted")
	refused(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 10, "burst": 100, "cost_source": "header:c", "min_cost": 150}}`, "can never be admitted")
	m := load(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 10, "burst": 100, "cost_source": "attribute:jwt:c", "max_cost": 150}}`)
	if got := codes(m); got != "impossible-cost" {
		t.Errorf("max_cost above the burst: warnings %q, want impossible-cost", got)
	}
	if _, s := m.Rules()[0].Limits[0].Bucket.Take(bucket.State{}, 0, 150*bucket.Token); s.Allowed || s.RetryAfter != bucket.Never {
		t.Errorf("a cost of 150 against a burst of 100: %+v, want never", s)
	}
}

func anyPrice(t *testing.T) {
	m := load(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 10, "burst": 100, "cost_source": "header:x-cost", "default_cost": 3, "min_cost": 2, "max_cost": 50}}`)
	for value, want := range map[string]bucket.Tokens{
		"5": 5000, "0.000001": 2000, "1e-9": 2000, "nan": 3000, "NaN": 3000, "inf": 3000, "-inf": 3000, "0x10": 3000, "-100000": 3000, "0": 3000, "": 3000,
		"1e300": 3000, "51": 50_000, "5 5": 3000, "2.0001": 2001,
	} {
		matches, _ := m.Match(nil, policy.Map{"header:x-cost": value}, 0, 0)
		if matches[0].Cost != want {
			t.Errorf("x-cost: %q costs %v, want %v", value, matches[0].Cost, want)
		}
	}
	free := load(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 10, "burst": 100, "cost_source": "header:x-cost"}}`)
	if got := codes(free); got != "unbounded-cost unbounded-cost" {
		t.Errorf("warnings %q, want unbounded-cost twice", got)
	}
}

func headerCase(t *testing.T) {
	m := load(t, `{"name": "r", "limit_keys": ["header:X-Key"], "match": {"Header:X-Plan": "a"}, "algorithm_config": {"rps": 10, "burst": 100, "cost_source": "header:X-Weight"}}`)
	matches, _ := m.Match(nil, policy.Map{"header:x-key": "k", "header:x-plan": "a", "header:x-weight": "7"}, 0, 0)
	if len(matches) != 1 || matches[0].Cost != 7000 {
		t.Errorf("matches %v, want one that costs 7", matches)
	}
}

func bucketIdentity(t *testing.T) {
	rules := func(name, path string) string {
		return fmt.Sprintf(`{"id": %q, "spec": {"selector": {"pathPrefix": %q}, "rules": [{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 2}}]}}`, name, path)
	}
	refused(t, `{"policies": [`+rules("a", "/a")+`, `+rules("b", "/b")+`]}`, "rule name is already used by an earlier rule")
}

func joinedKeys(t *testing.T) {
	m := load(t, `{"name": "r", "limit_keys": ["query:a", "query:b"], "algorithm_config": {"rps": 1, "burst": 2}}`)
	a, _ := m.Match(nil, policy.Map{"query:a": "x|y", "query:b": "z"}, 0, 0)
	b, _ := m.Match(nil, policy.Map{"query:a": "x", "query:b": "y|z"}, 0, 0)
	if a[0].Key == b[0].Key {
		t.Errorf("both keys are %q", a[0].Key)
	}
}

func shadowEndsNothing(t *testing.T) {
	m := load(t, `{"name": "new", "limit_keys": [], "mode": "shadow", "algorithm_config": {"rps": 1, "burst": 1}}`,
		`{"name": "old", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 3}}`)
	wants(t, m, "new (shadow), old", nil)
}

func matchBesideKeys(t *testing.T) {
	m := load(t, `{"name": "r", "limit_keys": ["ip:address"], "match": {"header:x-plan": "free"}, "algorithm_config": {"rps": 1, "burst": 1}}`)
	wants(t, m, "r", policy.Map{"ip:address": "192.0.2.1", "header:x-plan": "free"})
}

func queryInPath(t *testing.T) {
	refused(t, `{"selector": {"pathExact": "/v1/chat?x=1"}, "rules": [{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 1}}]}`, "the query is not part of the path")
	m := mustLoad(t, `{"selector": {"pathPrefix": "/v1/"}, "rules": [{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 1}}]}`)
	wants(t, m, "r", policy.Map{"path": "/v1/chat"})
	wants(t, m, "", policy.Map{"path": "/v1x"})
}

func paceIsALimit(t *testing.T) {
	m := load(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 100, "burst": 1}}`)
	if got := m.Rules()[0].Limits[0].Bucket.Capacity(); got != bucket.Token || len(lint.Check(m, time.Now())) > 0 {
		t.Errorf("capacity %v, warnings %v, want 1 and none", got, lint.Check(m, time.Now()))
	}
}

func weekStart(t *testing.T) {
	first := func(text string) (time.Weekday, string) {
		m := load(t, text)
		b := m.Rules()[0].Limits[0].Bucket
		return time.Unix(0, 0).UTC().Add(b.Start()).Weekday(), codes(m)
	}
	if day, said := first(`{"name": "r", "limit_keys": [], "algorithm": "cost_based", "algorithm_config": {"budget": 5, "period": "7d"}}`); day != time.Monday || said != "" {
		t.Errorf("a budget's week begins on %v, warnings %q, want Monday and none", day, said)
	}
	if day, said := first(`{"name": "r", "limit_keys": [], "algorithm": "fixed_window", "algorithm_config": {"tokens": 5, "window": "1w"}}`); day != time.Thursday || said != "week-start" {
		t.Errorf("a window's week begins on %v, warnings %q, want Thursday, and that it is said", day, said)
	}
}

func unknownFields(t *testing.T) {
	refused(t, `{"name": "r", "limit_keys": [], "algorithm_config": {"tokens_per_second": 1, "burst": 1, "default_max_completion_tokens": 9}}`, `field "default_max_completion_tokens" belongs to token_bucket_llm, not to token_bucket`)
}

func otherWords(t *testing.T) {
	refused(t, `{"version": 1, "limit_key": "ip", "config": {"rate": 10}}`, "no rules and no policies")
	refused(t, `{"rules": [{"name": "r", "limit_key": "ip:address", "config": {"rps": 10, "burst": 20}}]}`, `did you mean "limit_keys"?`)
	refused(t, `{"name": "r", "limit_keys": [], "algorithm": "loop_detection", "config": {"threshold": 3}}`, "algorithm must be")
}

func budgetAboveAll(t *testing.T) {
	refused(t, `{"name": "r", "limit_keys": [], "algorithm": "cost_based", "algorithm_config": {"budget": 10, "period": "1d", "fixed_cost": 11}}`, "can never be admitted")
	b := load(t, `{"name": "r", "limit_keys": [], "algorithm": "cost_based", "algorithm_config": {"budget": 10, "period": "1d"}}`).Rules()[0].Limits[0].Bucket
	if _, s := b.Take(bucket.State{}, 0, 11*bucket.Token); s.RetryAfter != bucket.Never {
		t.Errorf("a cost of 11 of a budget of 10: retry after %v, want never", s.RetryAfter)
	}
	state, _ := b.Take(bucket.State{}, 0, 10*bucket.Token)
	denied, _ := b.Take(state, 0, 5*bucket.Token)
	if denied != state {
		t.Error("a denied request changes the budget, if only for a moment")
	}
}

func jitterIsAWord(t *testing.T) {
	m := load(t, `{"name": "r", "limit_keys": [], "jitter": 0, "algorithm_config": {"rps": 1, "burst": 1}}`)
	if percent, ok := m.Rules()[0].Jitter.Percent(); percent != 0 || !ok {
		t.Errorf("jitter: 0 is %d, %t", percent, ok)
	}
	refused(t, `{"name": "r", "limit_keys": [], "jitter": "-50%", "algorithm_config": {"rps": 1, "burst": 1}}`, "jitter must be a whole percentage of the wait")
}

func allLimitsMatch(t *testing.T) {
	m := load(t, `{"name": "user", "limit_keys": ["jwt:sub"], "algorithm_config": {"rps": 10, "burst": 50}}`,
		`{"name": "global", "limit_keys": [], "algorithm_config": {"rate": "1/30s", "burst": 100}}`)
	wants(t, m, "user, global", policy.Map{"jwt:sub": "u"})
}

func inactive(t *testing.T) {
	m := load(t, `{"name": "old", "limit_keys": [], "mode": "off", "match": {"jwt:plan": "pro"}, "algorithm_config": {"rps": 1, "burst": 1}}`)
	wants(t, m, "", policy.Map{"jwt:plan": "pro"})
}

func twoForAll(t *testing.T) {
	refused(t, `{"rules": [{"name": "a", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 1}}, {"name": "b", "limit_keys": [], "algorithm_config": {"rps": 9, "burst": 9}}]}`,
		`rule "b" can never match: rule "a" matches all its requests first`)
}

func senselessNumbers(t *testing.T) {
	for _, numbers := range []string{`"rps": 0, "burst": 5`, `"rps": "NaN", "burst": 5`, `"rps": 1, "burst": -5`, `"rps": 1, "burst": 0`, `"rate": "0/1m", "burst": 5`} {
		refused(t, `{"name": "r", "limit_keys": [], "algorithm_config": {`+numbers+`}}`, "/algorithm_config/")
	}
}

func pathOfARule(t *testing.T) {
	m := load(t, `{"name": "search", "limit_keys": [], "match": {"path": "/api/search"}, "algorithm_config": {"rps": 1000, "burst": 2000}}`)
	wants(t, m, "search", policy.Map{"path": "/api/search"})
	wants(t, m, "", policy.Map{"path": "/api/other"})
}

func pathKeys(t *testing.T) {
	m := load(t, `{"name": "users", "limit_keys": ["path"], "match": {"path": "/users/*"}, "algorithm_config": {"rps": 1, "burst": 1}}`)
	if got := codes(m); got != "path-key" {
		t.Errorf("warnings %q, want path-key", got)
	}
	m = load(t, `{"name": "users", "limit_keys": [], "match": {"path": "/users/*"}, "algorithm_config": {"rps": 1, "burst": 1}}`)
	a, _ := m.Match(nil, policy.Map{"path": "/users/1"}, 0, 0)
	b, _ := m.Match(nil, policy.Map{"path": "/users/2"}, 0, 0)
	if a[0].Key != b[0].Key || len(lint.Check(m, time.Now())) > 0 {
		t.Errorf("keys %q and %q, warnings %v, want one bucket and none", a[0].Key, b[0].Key, lint.Check(m, time.Now()))
	}
}

func anonymous(t *testing.T) {
	m := load(t, `{"name": "user", "limit_keys": ["jwt:sub"], "algorithm_config": {"rps": 1, "burst": 1}}`,
		`{"name": "anonymous", "limit_keys": ["ip:address"], "match": {"jwt:sub": {"not": "*"}}, "algorithm_config": {"rps": 1, "burst": 1}}`)
	wants(t, m, "user", policy.Map{"jwt:sub": "u", "ip:address": "192.0.2.1"})
	wants(t, m, "anonymous", policy.Map{"ip:address": "192.0.2.1"})
}

func sites(t *testing.T) {
	m := load(t, `{"name": "r", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 1, "burst": 1}}`)
	a, _ := m.Match(nil, policy.Map{"ip:address": "2001:db8:1:2::1"}, 0, 0)
	b, _ := m.Match(nil, policy.Map{"ip:address": "2001:db8:1:2:ffff::2"}, 0, 0)
	c, _ := m.Match(nil, policy.Map{"ip:address": "::ffff:192.0.2.1"}, 0, 0)
	d, _ := m.Match(nil, policy.Map{"ip:address": "192.0.2.1"}, 0, 0)
	if a[0].Key != b[0].Key || c[0].Key != d[0].Key {
		t.Errorf("keys %q and %q, %q and %q, want two equal pairs", a[0].Key, b[0].Key, c[0].Key, d[0].Key)
	}
}
