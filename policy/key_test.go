// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

// keyOf is the key of the only limit a request falls under.
func keyOf(t testing.TB, m *policy.Matcher, attrs policy.Attributes) string {
	t.Helper()
	matches, _ := m.Match(nil, attrs, 0, 0)
	if len(matches) != 1 {
		t.Fatalf("%v: %d matches, want 1", attrs, len(matches))
	}
	return matches[0].Key
}

func TestKeyForm(t *testing.T) {
	for _, tc := range []struct {
		name, keys string
		attrs      policy.Map
		want       string
	}{
		{"all", ``, policy.Map{}, "all:"},
		{"free", `"ip:address"`, policy.Map{"ip:address": "192.0.2.1"}, "free:ip=192.0.2.1"},
		{"free", `"ip:address"`, policy.Map{"ip:address": "::ffff:192.0.2.1"}, "free:ip=192.0.2.1"},
		{"free", `"ip:address"`, policy.Map{"ip:address": "2001:db8:1:2:3::4"}, "free:ip=2001:db8:1:2::/64"},
		{"free", `"ip:address"`, policy.Map{"ip:address": "2001:DB8:1:2::"}, "free:ip=2001:db8:1:2::/64"},
		{"free", `"ip:address/56"`, policy.Map{"ip:address": "2001:db8:1:2ff::1"}, "free:ip=2001:db8:1:200::/56"},
		{"free", `"ip:address/128"`, policy.Map{"ip:address": "fe80::1%eth0"}, "free:ip=fe80::1/128"},
		{"free", `"ip:address/128"`, policy.Map{"ip:address": "fe80::1"}, "free:ip=fe80::1/128"},
		{"a b/c:d|%", `"path", "method"`, policy.Map{"path": "/a b|{c}", "method": "GET"}, "a%20b/c%3Ad%7C%25:path=/a%20b%7C%7Bc%7D|method=GET"},
		{"r", `"query:a=b", "tenant"`, policy.Map{"query:a=b": "", "tenant": "ü~"}, "r:a%3Db=|tenant=%C3%BC%7E"},
		{"r", `"jwt:sub", "host"`, policy.Map{"jwt:sub": "user|1", "host": "h"}, "r:sub=user%7C1|host=h"},
		{"r", `"query:0123456789012345678901234"`, policy.Map{"query:0123456789012345678901234": "x"}, "r:1=x"},
	} {
		m := load(t, fmt.Sprintf(`{"name": %q, "limit_keys": [%s], @}`, tc.name, tc.keys))
		if got := keyOf(t, m, tc.attrs); got != tc.want {
			t.Errorf("rule %q by %s of %v: key %q, want %q", tc.name, tc.keys, tc.attrs, got, tc.want)
		}
	}
}

// Secrets and long values are hashed with the key of the options.
func TestKeyHash(t *testing.T) {
	const secret = "s3cr3t"
	for _, name := range []string{"header:authorization", "header:x-api-key", "cookie:a", "header:cookie", "query:access_token",
		"header:x-auth", "query:session", "user:password"} {
		m := load(t, fmt.Sprintf(`{"name": "r", "limit_keys": [%q], @}`, name))
		key := keyOf(t, m, policy.Map{name: secret})
		if strings.Contains(key, secret) || !strings.Contains(key, "=~") {
			t.Errorf("%s: key %q shows the secret", name, key)
		}
		if again := keyOf(t, m, policy.Map{name: secret}); key != again {
			t.Errorf("%s: keys %q and %q differ", name, key, again)
		}
	}
	long := policy.Map{"path": "/" + strings.Repeat("x", 1<<20)}
	with := func(key string) string {
		m, err := policy.Load([]byte(`{"name": "r", "limit_keys": ["path"], "algorithm_config": {"rps": 1, "burst": 1}}`),
			policy.Options{HashKey: []byte(key)})
		if err != nil {
			t.Fatal(err)
		}
		return keyOf(t, m, long)
	}
	if a, b := with("one"), with("one"); a != b || len(a) > 40 {
		t.Errorf("one hash key gives %q and %q, want one short key", a, b)
	}
	if a, b := with("one"), with("two"); a == b {
		t.Errorf("two hash keys give one key %q", a)
	}
	if a, b := with(""), with(""); a != b {
		t.Errorf("the random hash key of the process gives %q and %q", a, b)
	}
}

// A limit keeps its buckets when its numbers change, and shares them with no
// other.
func TestKeyIdentity(t *testing.T) {
	config := func(rps int) string {
		return fmt.Sprintf(`{"name": "r", "limit_keys": ["path"], "limits": [{"rps": %d, "burst": 5}, {"name": "x", "rps": 1, "burst": %d}]}`, rps, rps)
	}
	attrs, seen := policy.Map{"path": "/"}, map[string]bool{}
	before, _ := load(t, config(1)).Match(nil, attrs, 0, 0)
	after, _ := load(t, config(2), `{"name": "R", "limit_keys": ["path"], "group": "g", @}`).Match(nil, attrs, 0, 0)
	for i, m := range after {
		if i < len(before) && m.Key != before[i].Key {
			t.Errorf("limit %s: key %q became %q", m.Limit.Name, before[i].Key, m.Key)
		}
		if seen[m.Key] {
			t.Errorf("two limits share the key %q", m.Key)
		}
		seen[m.Key] = true
	}
}

// FuzzKey: two requests have the same key only if their values are equal. Every key is valid in every store.
func FuzzKey(f *testing.F) {
	f.Add("a|b", "c", "a", "b|c")
	f.Add("", "", "", "%00")
	f.Add("~", "x", "%7E", "x")
	f.Add("a=b", "", "a", "=b")
	f.Add(strings.Repeat("x", 64), "", strings.Repeat("x", 65), "")
	f.Add(strings.Repeat("é", 22), "{}", "\r\n", " ")
	m := load(f, `{"name": "r", "limit_keys": ["jwt:a", "path", "header:x-api-key"], @}`)
	slotted := loadText(f, `{"slot_by": "jwt:a", "rules": [
		{"name": "r", "limit_keys": ["jwt:a", "path", "header:x-api-key"], "algorithm_config": {"rps": 1, "burst": 1}}]}`)
	f.Fuzz(func(t *testing.T, a1, a2, b1, b2 string) {
		one := keyOf(t, m, policy.Map{"jwt:a": a1, "path": a2, "header:x-api-key": a1})
		two := keyOf(t, m, policy.Map{"jwt:a": b1, "path": b2, "header:x-api-key": b1})
		if (one == two) != (a1 == b1 && a2 == b2) {
			t.Errorf("(%q, %q) and (%q, %q) have the keys %q and %q", a1, a2, b1, b2, one, two)
		}
		tagged := keyOf(t, slotted, policy.Map{"jwt:a": a1, "path": a2, "header:x-api-key": a1})
		if tag, ok := strings.CutSuffix(tagged, one); !ok || (tag == "") != (a1 == "") || strings.Count(tag, "{") != strings.Count(tag, "}") ||
			tag != "" && (tag[0] != '{' || strings.IndexByte(tag, '}') != len(tag)-1) {
			t.Errorf("(%q, %q) has the key %q, and under slot_by %q", a1, a2, one, tagged)
		}
		if len(tagged) > policy.MaxKeyBytes {
			t.Errorf("key of %d bytes: %q", len(tagged), tagged)
		}
		for _, c := range []byte(one) {
			if c <= ' ' || c >= 0x7f || c == '{' || c == '}' {
				t.Errorf("key %q has the byte %q", one, c)
			}
		}
	})
}

// The longest key there can be fits every store.
func TestKeyLongest(t *testing.T) {
	var keys []string
	attrs := policy.Map{}
	for i := range policy.MaxLimitKeys {
		name := fmt.Sprintf("query:%02d%s", i, strings.Repeat("x", 22))
		keys = append(keys, fmt.Sprintf("%q", name))
		attrs[name] = strings.Repeat("y", 64)
	}
	name := strings.Repeat(":", policy.MaxNameBytes)
	limit := strings.Repeat(":", 32)
	m := loadText(t, fmt.Sprintf(`{"slot_by": %s, "rules": [
		{"name": %q, "limit_keys": [%s], "limits": [{"name": %q, "rps": 1, "burst": 1}, {"rps": 1, "burst": 1}]}]}`,
		keys[0], name, strings.Join(keys, ","), limit))
	matches, _ := m.Match(nil, attrs, 0, 0)
	for _, match := range matches {
		if len(match.Key) > policy.MaxKeyBytes || len(match.Key) < 966 {
			t.Errorf("key of %d bytes, want 966 to %d: %q", len(match.Key), policy.MaxKeyBytes, match.Key)
		}
	}
}
