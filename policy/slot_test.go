// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

// loadText compiles a valid file.
func loadText(t testing.TB, text string) *policy.Matcher {
	t.Helper()
	m, err := policy.Load([]byte(text), policy.Options{HashKey: []byte("test")})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

// slotted is a policy of one rule with these limit_keys.
func slotted(t *testing.T, slotBy, keys, more string) *policy.Matcher {
	t.Helper()
	return loadText(t, fmt.Sprintf(`{"slot_by": %q, "rules": [{"name": "free", "limit_keys": [%s], %s "algorithm_config": {"rps": 1, "burst": 1}}]}`, slotBy, keys, more))
}

func TestSlotBy_Key(t *testing.T) {
	for _, tc := range []struct {
		slotBy, keys string
		attrs        policy.Map
		want         string
		warns        bool
	}{
		{"tenant", `"tenant", "path"`, policy.Map{"tenant": "acme", "path": "/v1"}, "{acme}free:tenant=acme|path=/v1", false},
		{"tenant", `"path", "tenant"`, policy.Map{"tenant": "a}{b", "path": "/v1"}, "{a%7D%7Bb}free:path=/v1|tenant=a%7D%7Bb", false},
		{"Header:X-Tenant", `"header:x-tenant"`, policy.Map{"header:x-tenant": "acme"}, "{acme}free:x-tenant=acme", false},
		{"tenant", `"path"`, policy.Map{"tenant": "acme", "path": "/v1"}, "free:path=/v1", true},
		{"tenant", ``, policy.Map{"tenant": "acme"}, "free:", true},
		{"tenant", `"tenant"`, policy.Map{"tenant": ""}, "free:tenant=", false},
		{"ip:address/48", `"ip:address"`, policy.Map{"ip:address": "2001:db8:1:2::3"}, "{2001:db8:1::/48}free:ip=2001:db8:1:2::/64", false},
		{"ip:address", `"ip:address/48"`, policy.Map{"ip:address": "2001:db8:1:2::3"}, "free:ip=2001:db8:1::/48", true},
	} {
		m := slotted(t, tc.slotBy, tc.keys, "")
		if got := keyOf(t, m, tc.attrs); got != tc.want {
			t.Errorf("slot_by %s, limit_keys [%s] of %v: key %q, want %q", tc.slotBy, tc.keys, tc.attrs, got, tc.want)
		}
		if got := strings.Contains(fmt.Sprint(m.Warnings()), "slot_by"); got != tc.warns {
			t.Errorf("slot_by %s, limit_keys [%s]: warnings %q, want one: %v", tc.slotBy, tc.keys, m.Warnings(), tc.warns)
		}
	}
}

// The tag distinguishes only values that the key distinguishes, so it never splits a bucket.
func TestSlotBy_MissingIsEmpty(t *testing.T) {
	m := slotted(t, "tenant", `"tenant"`, `"on_missing": "empty",`)
	if missing, empty := keyOf(t, m, policy.Map{}), keyOf(t, m, policy.Map{"tenant": ""}); missing != empty {
		t.Errorf("key %q without a tenant, %q of an empty one; want one key", missing, empty)
	}
}

func TestSlotBy_HashesSecrets(t *testing.T) {
	const secret = "s3cr3t"
	key := keyOf(t, slotted(t, "header:x-api-key", `"header:x-api-key"`, ""), policy.Map{"header:x-api-key": secret})
	tag, _, _ := strings.Cut(key, "}")
	if strings.Contains(key, secret) || !strings.HasPrefix(tag, "{~") || !strings.HasSuffix(key, "="+tag[1:]) {
		t.Errorf("key %q: want a tag of the hash that it has", key)
	}
}

// Every rule of a tenant has one tag, whichever its other attributes are.
func TestSlotBy_OfABundle(t *testing.T) {
	rule := func(name, keys string) string {
		return fmt.Sprintf(`{"name": %q, "limit_keys": [%s], "algorithm_config": {"rps": 1, "burst": 1}}`, name, keys)
	}
	m := loadText(t, `{"slot_by": "tenant", "policies": [
		{"id": "a", "spec": {"rules": [`+rule("a", `"tenant"`)+`, `+rule("b", `"path", "tenant"`)+`]}},
		{"id": "b", "spec": {"slot_by": "path", "rules": [`+rule("c", `"path"`)+`]}}]}`)
	matches, _ := m.Match(nil, policy.Map{"tenant": "acme", "path": "/v1"}, 0, 0)
	want := []string{"{acme}a:tenant=acme", "{acme}b:path=/v1|tenant=acme", "{/v1}c:path=/v1"}
	if len(matches) != len(want) {
		t.Fatalf("%d matches, want %d", len(matches), len(want))
	}
	for i, w := range want {
		if matches[i].Key != w {
			t.Errorf("key %q, want %q", matches[i].Key, w)
		}
	}
}

func TestDeadline(t *testing.T) {
	for text, want := range map[string]string{"": "50ms", `"deadline": "1ms",`: "1ms", `"deadline": "20ms",`: "20ms", `"deadline": "10s",`: "10s"} {
		m := load(t, `{"name": "r", "limit_keys": [], `+text+` "on_store_error": "local", "algorithm_config": {"rps": 1, "burst": 1}}`)
		if r := m.Rules()[0]; r.Deadline.String() != want || r.OnStoreError != policy.OnStoreErrorLocal {
			t.Errorf("%s: deadline %v, on_store_error %v; want %s, local", text, r.Deadline, r.OnStoreError, want)
		}
	}
}

func TestLeased(t *testing.T) {
	for _, tc := range []struct {
		config string
		want   bool
	}{
		{`"algorithm_config": {"rps": 1, "burst": 1}`, false},
		{`"algorithm_config": {"rps": 1, "burst": 1, "leased": true}`, true},
		{`"algorithm_config": {"rps": 10, "burst": 100, "leased": false, "shards": 2}`, false},
		{`"algorithm_config": {"rate": "5/1m", "burst": 10, "refill": "interval", "leased": true}`, true},
		{`"algorithm": "fixed_window", "algorithm_config": {"tokens": 1, "window": "1m", "leased": true}`, true},
	} {
		m := load(t, `{"name": "r", "limit_keys": [], `+tc.config+`}`)
		if got := m.Rules()[0].Limits[0].Leased; got != tc.want {
			t.Errorf("%s: leased %v, want %v", tc.config, got, tc.want)
		}
	}
}

// The slot_by of a rule overrides the slot_by of its policy.
func TestSlotBy_OfARule(t *testing.T) {
	m := loadText(t, `{"slot_by": "tenant", "rules": [
		{"name": "a", "limit_keys": ["tenant", "path"], "slot_by": "path", "algorithm_config": {"rps": 1, "burst": 1}},
		{"name": "b", "limit_keys": ["path", "tenant", "host"], "algorithm_config": {"rps": 1, "burst": 1}}]}`)
	matches, _ := m.Match(nil, policy.Map{"tenant": "acme", "path": "/v1", "host": "h"}, 0, 0)
	for i, want := range []string{"{/v1}a:", "{acme}b:"} {
		if len(matches) != 2 || !strings.HasPrefix(matches[i].Key, want) {
			t.Errorf("matches are %+v, want the key of number %d to begin with %q", matches, i, want)
		}
	}
}
