// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/policy"
)

// FuzzBucketAgainstMatch: a bucket has the same rule and limit by its key and by a request. Facts about all of
// its requests hold for that request.
func FuzzBucketAgainstMatch(f *testing.F) {
	for seed := range uint64(300) {
		r := rand.New(testseed.PCG(seed, 1))
		data := make([]byte, r.IntN(3000))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &chooser{data}
		m := c.matcher(t)
		if m == nil {
			return
		}
		for i := range 40 {
			attrs, now := c.request(), bucket.Instant(1_500_000+c.below(2)*1_000_000)
			matches, verdict := m.Match(nil, attrs, 0, now)
			if verdict.Denies() {
				continue
			}
			calm := m.Explain(attrs, 0, now).Shadow != nil
			for _, want := range matches {
				got, v, err := m.Bucket(want.Key, now)
				if err != nil && strings.Contains(want.Key+"|", "=|") && strings.Contains(err.Error(), "its limit is ambiguous") {
					continue // missing, or empty
				}
				if err != nil || got.Rule != want.Rule || got.Limit != want.Limit || got.Key != want.Key || got.Cost != want.Cost {
					t.Fatalf("%q: bucket %q: %+v, %v; want %+v", attrs, want.Key, got, err, want)
				}
				if v.Allow != nil || v.Block != nil && !calm || got.Shadow && !want.Shadow {
					t.Fatalf("%q: bucket %q: %+v, in shadow %t; and yet a request has %+v", attrs, want.Key, v, got.Shadow, want)
				}
			}
			if len(c.data) == 0 && i > 3 {
				return
			}
		}
	})
}

// keyed has rules whose keys are made in every way.
const keyed = `{"rules": [
	{"name": "plain", "group": "1", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 1, "burst": 10}},
	{"name": "secret", "group": "2", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rps": 1, "burst": 10}},
	{"name": "two", "group": "3", "limit_keys": ["ip:address", "header:x-user"], "limits": [
		{"name": "fast", "rps": 1, "burst": 3}, {"name": "slow", "algorithm": "fixed_window", "tokens": 50, "window": "1d"}]},
	{"name": "slotted", "group": "4", "limit_keys": ["ip:address", "path"], "slot_by": "ip:address/48", "algorithm_config": {"rps": 1, "burst": 10}},
	{"name": "a:b {c}", "group": "5", "on_missing": "empty", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 1, "burst": 10}},
	{"name": "half", "group": "6", "mode": "50%", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 1, "burst": 10}},
	{"name": "named", "group": "8", "limit_keys": ["x:a=b", "header:x-user"], "algorithm_config": {"rps": 1, "burst": 10}},
	{"name": "all", "group": "7", "limit_keys": [], "algorithm_config": {"rps": 1000, "burst": 1000}}
], "overrides": [OVERRIDES]}`

func keyedPolicy(t *testing.T, overrides ...string) *policy.Matcher {
	t.Helper()
	text := strings.Replace(keyed, "OVERRIDES", strings.Join(overrides, ", "), 1)
	m, err := policy.Load([]byte(text), policy.Options{Now: today, HashKey: []byte("test")})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestBucket_EveryKey(t *testing.T) {
	m := keyedPolicy(t)
	tests := []struct {
		name  string
		attrs policy.Map
	}{
		{"plain", policy.Map{"x:a=b": "c=d", "header:x-user": "alice", "header:x-api-key": "k1", "ip:address": "192.0.2.1", "path": "/a"}},
		{"IPv6", policy.Map{"header:x-user": "bob", "ip:address": "2001:db8:1:2::3", "path": "/a"}},
		{"special", policy.Map{"header:x-user": "a:b|c=~{d}%\x00é", "ip:address": "2001:db8::", "path": "/|{}"}},
		{"empty", policy.Map{"header:x-user": "", "ip:address": "::", "path": ""}},
		{"long", policy.Map{"header:x-user": strings.Repeat("x", 65), "header:x-api-key": strings.Repeat("y", 65), "ip:address": "::1", "path": strings.Repeat("%", 40)}},
		{"missing", policy.Map{}},
	}
	for _, tt := range tests {
		matches, _ := m.Match(nil, tt.attrs, 0, bucket.At(today))
		for _, want := range matches {
			got, v, err := m.Bucket(want.Key, bucket.At(today))
			if err != nil || got.Rule != want.Rule || got.Limit != want.Limit || got.Key != want.Key || v != (policy.Verdict{}) {
				t.Errorf("%s: %q: %+v, %+v, %v; want %+v", tt.name, want.Key, got, v, err, want)
			}
			if present := tt.attrs["header:x-user"] != ""; got.Shadow != want.Shadow && present {
				t.Errorf("%s: %q: in shadow %t, want %t", tt.name, want.Key, got.Shadow, want.Shadow)
			}
			untagged := want.Key[strings.IndexByte(want.Key, '}')+1:]
			if strings.HasPrefix(want.Key, "{") {
				if got, _, err := m.Bucket(untagged, 0); err != nil || got.Key != want.Key {
					t.Errorf("%s: %q: %q, %v; want the tag of %q", tt.name, untagged, got.Key, err, want.Key)
				}
			}
		}
	}
}

func TestBucket_BadKeys(t *testing.T) {
	m := keyedPolicy(t)
	hash := "~" + strings.Repeat("A", 22)
	for key, want := range map[string]string{
		"":                                   "it is empty",
		strings.Repeat("x", 1089):            "the maximum is 1088",
		"plan:x-user=alice":                  `did you mean "plain"`,
		"nothing":                            `the policy has no limit named "nothing"`,
		"plain":                              `write "x-user=…"`,
		"plain:x-user=a b":                   "not in the form that keys use",
		"plain:x-user=a|x-user=b":            "a different number of attributes",
		"plain:user=a":                       "keys of the rule have other attributes",
		"secret:x-api-key=k1":                "keys contain a hash",
		"secret:x-api-key=~abc":              "truncated",
		"plain:x-user=aaaa~01234567":         "truncated",
		"two/fast:ip=2001:db8::1":            "a different number of attributes",
		"two/fast:ip=1.2.3|x-user=a":         "address",
		"two:ip=1.2.3.4|x-user=a":            "the policy has no limit named",
		"{plain:x-user=alice":                "opening brace is not closed",
		"{alice}plain:x-user=alice":          "tag in braces does not belong",
		"{1.2.3.5}slotted:ip=1.2.3.4|path=/": "tag in braces does not belong",
		"#0123":                              "the policy has no limit named",
		"all":                                "",
		"all:x":                              "a different number of attributes",
		"\x00\xff":                           "the policy has no limit named",
		"secret:x-api-key=" + hash:           "",
		"a%3Ab%20%7Bc%7D:x-user=":            "",
		strings.Repeat("{}", 500):            "the policy has no limit named",
		"plain:" + strings.Repeat("|", 900):  "a different number of attributes",
	} {
		_, _, err := m.Bucket(key, 0)
		var ke *policy.KeyError
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", key, err)
		case want != "" && (!errors.As(err, &ke) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "use match")):
			t.Errorf("%q: %v, want a KeyError with %q", key, err, want)
		}
	}
}

func TestBucket_Overrides(t *testing.T) {
	const (
		another = `"action": "limit", "algorithm_config": {"rps": 2, "burst": 99}`
		deny    = `"action": "block"`
	)
	hashed := func(value string) string {
		matches, _ := keyedPolicy(t).Match(nil, policy.Map{"header:x-api-key": value}, 0, bucket.At(today))
		return matches[0].Key
	}
	long := strings.Repeat("l", 80)
	tests := []struct {
		name, key string
		overrides []string
		capacity  bucket.Tokens
		verdict   string // which override blocks it, or lets it pass
		shadow    bool
		err       string
	}{
		{"none", "plain:x-user=a", nil, 10, "", false, ""},
		{"by key", "plain:x-user=a", []string{another + `, "key": "plain:x-user=a"`}, 99, "", false, ""},
		{"of another key", "plain:x-user=b", []string{another + `, "key": "plain:x-user=a"`}, 10, "", false, ""},
		{"by match", "plain:x-user=abc", []string{another + `, "rules": ["plain"], "match": {"header:x-user": "ab*"}`}, 99, "", false, ""},
		{"by another match", "plain:x-user=b", []string{another + `, "rules": ["plain"], "match": {"header:x-user": "ab*"}`}, 10, "", false, ""},
		{"all of its buckets", "plain:x-user=b", []string{another + `, "rules": ["plain"], "match": {}`}, 99, "", false, ""},
		{"the first of two", "plain:x-user=b", []string{another + `, "rules": ["plain"], "match": {}`, `"action": "limit", "algorithm_config": {"rps": 2, "burst": 5}, "rules": ["plain"], "match": {}`}, 99, "", false, ""},
		{"hashed, the same value", hashed("k1"), []string{another + `, "rules": ["secret"], "match": {"header:x-api-key": ["k0", "k1"]}`}, 99, "", false, ""},
		{"hashed, others", hashed("k2"), []string{another + `, "rules": ["secret"], "match": {"header:x-api-key": ["k0", "k1"]}`}, 10, "", false, ""},
		{"hashed, all but others", hashed("k2"), []string{another + `, "rules": ["secret"], "match": {"header:x-api-key": {"not": "k1"}}`}, 99, "", false, ""},
		{"hashed, all", hashed("k2"), []string{another + `, "rules": ["secret"], "match": {"header:x-api-key": "*"}`}, 99, "", false, ""},
		{"hashed, a beginning", hashed("k2"), []string{another + `, "rules": ["secret"], "match": {"header:x-api-key": "k*"}`}, 10, "", false, "its limit is ambiguous: it contains the hash of a value that may match override o0"},
		{"long", hashed(long), []string{another + `, "rules": ["secret"], "match": {"header:x-api-key": "` + long + `"}`}, 99, "", false, ""},
		{"blocked by key", "plain:x-user=a", []string{deny + `, "key": "plain:x-user=a"`}, 10, "o0", false, ""},
		{"blocked by match", "plain:x-user=a", []string{deny + `, "match": {"header:x-user": "a"}`}, 10, "o0", false, ""},
		{"blocked by more than the key", "plain:x-user=a", []string{deny + `, "match": {"header:x-user": "a", "method": "GET"}`}, 10, "", false, ""},
		{"a network of it", "two/fast:ip=2001:db8::/64|x-user=a", []string{deny + `, "match": {"ip:address": "2001:db8::/80"}`}, 3, "", false, ""},
		{"its network", "two/fast:ip=2001:db8::/64|x-user=a", []string{deny + `, "match": {"ip:address": "2001:db8::/32"}`}, 3, "o0", false, ""},
		{"not its network", "two/fast:ip=192.0.2.1|x-user=a", []string{deny + `, "match": {"ip:address": {"not": "192.0.2.0/24"}}`}, 3, "", false, ""},
		{"an equals sign in a name", "named:x:a%3Db=c|x-user=a", []string{another + `, "rules": ["named"], "match": {"x:a=b": "c"}`}, 99, "", false, ""},
		{"allowed", "plain:x-user=a", []string{`"action": "allow", "rules": ["plain"], "match": {"header:x-user": "a"}`}, 10, "o0", false, ""},
		{"all in shadow", "plain:x-user=a", []string{`"action": "shadow"`, deny + `, "key": "plain:x-user=a"`}, 10, "", true, ""},
		{"some in shadow", "plain:x-user=a", []string{`"action": "shadow", "match": {"path": "/a"}`}, 10, "", false, ""},
		{"break glass", "plain:x-user=a", []string{`"action": "break_glass"`, deny + `, "key": "plain:x-user=a"`}, 10, "o0", false, ""},
		{"one of two limits", "two/slow:ip=192.0.2.1|x-user=a", []string{`"action": "limit", "rules": ["two"], "match": {}, "limits": [{"name": "fast", "rps": 1, "burst": 4}]`}, 50, "", false, ""},
		{"the other", "two/fast:ip=192.0.2.1|x-user=a", []string{`"action": "limit", "rules": ["two"], "match": {}, "limits": [{"name": "fast", "rps": 1, "burst": 4}]`}, 4, "", false, ""},
	}
	for _, tt := range tests {
		var list []string
		for i, body := range tt.overrides {
			list = append(list, override(`"id": "o`+string(rune('0'+i))+`", `+body))
		}
		m := keyedPolicy(t, list...)
		got, v, err := m.Bucket(tt.key, bucket.At(today))
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want an error with %q", tt.name, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got.Limit.Bucket.Capacity() != tt.capacity*bucket.Token || idOf(v.Block)+idOf(v.Allow) != tt.verdict || got.Shadow != tt.shadow {
			t.Errorf("%s: capacity %v, %q and %q, in shadow %t; want %v, %q, %t", tt.name, got.Limit.Bucket.Capacity(), idOf(v.Block), idOf(v.Allow), got.Shadow, tt.capacity, tt.verdict, tt.shadow)
		}
		late := bucket.At(today.Add(1e12))
		if got, v, err := m.Bucket(tt.key, late); err != nil || got.Limit.Override != nil || v != (policy.Verdict{}) {
			t.Errorf("%s: after the end of the override: %+v, %+v, %v", tt.name, got, v, err)
		}
	}
}
