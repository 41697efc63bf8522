package policy_test

import (
	"testing"
	"time"
	"fmt"
	"strings"

	"github.com/metehq/mete/policy"
)

func TestZZNames(t *testing.T) {
	for _, o := range []string{
		`"limits": [{"name": "x", "rps": 1, "burst": 5}]`,
		`"limits": [{"name": "x", "rps": 1, "burst": 5}, {"name": "y", "rps": 1, "burst": 7}]`,
		`"algorithm_config": {"rps": 1, "burst": 40, "shards": 4}`,
		`"algorithm_config": {"rps": 1, "burst": 40, "leased": true}`,
	} {
		m, err := policy.Load([]byte(`{"rules": [{"name": "r", "limit_keys": ["k"], "algorithm_config": {"rps": 1, "burst": 10}}], "overrides": [{"id": "o", "action": "limit", "rules": ["r"], "match": {"k": "a"}, `+o+`, "reason": "r", "author": "a", "expires_at": "2100-01-01T00:00:00Z"}]}`), policy.Options{Now: time.Unix(1, 0)})
		t.Log(o, err)
		if err == nil {
			ms, _ := m.Match(nil, policy.Map{"k": "a"}, 0, 0)
			for _, x := range ms {
				t.Log("   ", x.Key, x.Limit.Shards, x.Limit.Leased)
			}
		}
	}
}

func TestZZHostileOverrides(t *testing.T) {
	var rules, names strings.Builder
	for i := range 10000 {
		if i > 0 {
			rules.WriteByte(',')
			names.WriteByte(',')
		}
		fmt.Fprintf(&rules, `{"name":"r%d","limit_keys":["k"],"match":{"a":"%d"},"algorithm_config":{"rps":1,"burst":1}}`, i, i)
		fmt.Fprintf(&names, `"r%d"`, 9999-i%10)
	}
	for name, f := range map[string]func(i int) string{
		"names": func(i int) string { return `"action":"allow","match":{"k":"a"},"rules":[` + names.String() + `]` },
		"bad names": func(i int) string { return `"action":"allow","match":{"k":"a"},"rules":[` + strings.ReplaceAll(names.String(), "r", "s") + `]` },
		"keys": func(i int) string { return `"action":"block","key":"r9999:k=` + fmt.Sprint(i) + `"` },
	} {
		n := 20
		if name == "keys" {
			n = 1000
		}
		if name == "bad names" {
			n = 1
		}
		var os []string
		for i := range n {
			os = append(os, fmt.Sprintf(`{"id":"o%d",%s,"reason":"r","author":"a","expires_at":"2100-01-01T00:00:00Z"}`, i, f(i)))
		}
		text := `{"rules":[` + rules.String() + `],"overrides":[` + strings.Join(os, ",") + `]}`
		start := time.Now()
		_, err := policy.Load([]byte(text), policy.Options{Now: time.Unix(1, 0)})
		t.Logf("%s: %.1f MiB, %d overrides: %v, %.200v", name, float64(len(text))/(1<<20), n, time.Since(start), err)
	}
}
