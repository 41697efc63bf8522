// SPDX-License-Identifier: Apache-2.0

package dropin_test

import (
	"errors"
	"strings"
	"testing"

	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"

	"github.com/metehq/mete/envoyapi/dropin"
)

// Each file has one error, which names the line, the wrong value and a remedy.
func TestParse_Refuses(t *testing.T) {
	for _, tc := range []struct{ name, yaml, want string }{
		{"empty file", "", "f.yaml:1:1: the domain is missing or empty: set domain"},
		{"only comments", "# nothing", "f.yaml:1:1: the domain is missing"},
		{"no domain", "descriptors: []", "f.yaml:1:1: the domain is missing"},
		{"empty domain", "domain: ''", "f.yaml:1:9: the domain is missing or empty"},
		{"a list at the top", "- domain: a", "f.yaml:1:1: a list instead of a mapping: write KEY: VALUE"},
		{"not YAML", "domain: [a", "f.yaml:1:9: "},
		{"unknown key", "domain: a\ndescripters: []", `f.yaml:2:1: unknown key "descripters": write descriptors`},
		{"unknown key of a limit", "domain: a\ndescriptors:\n- key: k\n  rate_limit: {unit: day, requests_per_units: 1}", `unknown key "requests_per_units": write requests_per_unit`},
		{"unknown key in a place without effect", "domain: a\nname: {oops: 1}", `f.yaml:2:8: unknown key "oops"`},
		{"key that is a number", "domain: a\n5: x", "f.yaml:2:1: a key is a number instead of text"},
		{"key that is a boolean", "domain: a\nyes: x", "f.yaml:2:1: a key is a boolean instead of text"},
		{"list of texts", "domain: a\ndescriptors: [k]", "f.yaml:2:15: a list has a text instead of a mapping"},
		{"list with null", "domain: a\ndescriptors: [null]", "a list has a null instead of a mapping"},
		{"mapping instead of a list", "domain: a\ndescriptors: {key: k}", "f.yaml:2:14: descriptors is a mapping instead of a list"},
		{"descriptor without a key", "domain: a\ndescriptors:\n- value: v", "f.yaml:3:3: the descriptor has no key"},
		{"key null", "domain: a\ndescriptors:\n- key: ~", "the descriptor has no key"},
		{"key that is a list", "domain: a\ndescriptors:\n- key: [a]", "f.yaml:3:8: key is a list instead of text"},
		{"duplicate key", "domain: a\ndescriptors:\n- key: k\n  value: v\n- key: k\n  value: v", `f.yaml:5:3: descriptor "a.k_v" is already configured`},
		{"duplicate composite key", "domain: a\ndescriptors:\n- key: k\n  value: v_w\n- key: k_v\n  value: w", `descriptor "a.k_v_w" is already configured`},
		{"duplicate nested key", "domain: a\ndescriptors:\n- key: k\n  descriptors: [{key: n}, {key: n}]", `descriptor "a.k.n" is already configured`},
		{"unit", "domain: a\ndescriptors:\n- key: k\n  rate_limit:\n    unit: fortnight\n    requests_per_unit: 1", `f.yaml:5:11: unit "fortnight" is unknown: write second, minute`},
		{"unit unknown", "domain: a\ndescriptors:\n- key: k\n  rate_limit: {unit: unknown}", `unit "unknown" is unknown`},
		{"no unit", "domain: a\ndescriptors:\n- key: k\n  rate_limit: {requests_per_unit: 1}", "f.yaml:4:15: the unit is missing"},
		{"unit of an unlimited limit", "domain: a\ndescriptors:\n- key: k\n  rate_limit: {unlimited: true, unit: day}", `an unlimited limit has the unit "day": remove`},
		{"negative number", "domain: a\ndescriptors:\n- key: k\n  rate_limit: {unit: day, requests_per_unit: -1}", "requests_per_unit: -1 is out of range: write a whole number from 0 to 4294967295"},
		{"large number", "domain: a\ndescriptors:\n- key: k\n  rate_limit: {unit: day, requests_per_unit: 4294967296}", "4294967296 is out of range"},
		{"fraction", "domain: a\ndescriptors:\n- key: k\n  rate_limit: {unit: day, requests_per_unit: 1.5}", "requests_per_unit is a number instead of a whole number"},
		{"quoted number", "domain: a\ndescriptors:\n- key: k\n  rate_limit: {unit: day, requests_per_unit: '5'}", "requests_per_unit is a text instead of a whole number"},
		{"boolean in quotes", "domain: a\ndescriptors:\n- key: k\n  shadow_mode: 'true'", "f.yaml:4:16: shadow_mode is a text instead of a boolean"},
		{"limit that is a list", "domain: a\ndescriptors:\n- key: k\n  rate_limit: []", "f.yaml:4:15: a list instead of a mapping"},
		{"share_threshold without a wildcard", "domain: a\ndescriptors:\n- key: k\n  value: v\n  share_threshold: true", `share_threshold requires a wildcard: "k_v" has no asterisk`},
		{"replaces itself", "domain: a\ndescriptors:\n- key: k\n  rate_limit: {unit: day, name: n, replaces: [{name: n}]}", `limit "n" replaces itself`},
		{"replaces nothing", "domain: a\ndescriptors:\n- key: k\n  rate_limit: {unit: day, replaces: [{name: ''}]}", "an entry of replaces has no name"},
		{"replaces without a key", "domain: a\ndescriptors:\n- key: k\n  rate_limit: {unit: day, replaces: [other]}", "a list has a text instead of a mapping"},
		{"metadata", "domain: a\ndescriptors:\n- key: k\n  metadata: [a]", "f.yaml:4:13: metadata is a list instead of a mapping"},
		{"merge of a text", "domain: a\n<<: b", "f.yaml:2:5: the merge key << has a text instead of a mapping"},
		{"alias of itself", "domain: a\ndescriptors: &d\n- key: k\n  descriptors: *d", "nested more than"},
	} {
		_, err := dropin.Parse([]dropin.File{{Name: "f.yaml", Data: []byte(tc.yaml)}}, dropin.ConfigOptions{})
		if _, ok := errors.AsType[*dropin.ConfigError](err); !ok || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "dropin: f.yaml:") {
			t.Errorf("%s: error %q, want %q", tc.name, err, tc.want)
		}
	}
}

// A chain of aliases would become 10^9 descriptors.
func TestParse_AliasBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("domain: a\ndescriptors:\n- &a0 {key: k}\n")
	for i := range 9 {
		b.WriteString("- &a" + string(rune('1'+i)) + " {key: k" + string(rune('1'+i)) + ", descriptors: [")
		b.WriteString(strings.Repeat("*a"+string(rune('0'+i))+", ", 10) + "]}\n")
	}
	_, err := dropin.Parse([]dropin.File{{Name: "f.yaml", Data: []byte(b.String())}}, dropin.ConfigOptions{})
	if err == nil || !strings.Contains(err.Error(), "more than 250000 values") {
		t.Errorf("error %v, want the bound of values", err)
	}
}

func TestParse_Domains(t *testing.T) {
	files := []dropin.File{
		{Name: "1.yaml", Data: []byte("domain: a\ndescriptors: [{key: k}]")},
		{Name: "2.yaml", Data: []byte("domain: a\ndescriptors: [{key: l, rate_limit: {unit: day, requests_per_unit: 3}}]")},
	}
	_, err := dropin.Parse(files, dropin.ConfigOptions{})
	if want := `dropin: 2.yaml:1:9: domain "a" is already configured: use one file per domain, or allow merging with MERGE_DOMAIN_CONFIG=true`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	c, err := dropin.Parse(files, dropin.ConfigOptions{MergeDomains: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Dump(), "a.l: unit=DAY requests_per_unit=3, shadow_mode: false, quota_mode: false\n"; got != want || len(c.Domains()) != 1 {
		t.Errorf("dump %q of domains %q, want %q", got, c.Domains(), want)
	}
	files[1].Data = []byte("domain: a\ndescriptors: [{key: k}]")
	if _, err := dropin.Parse(files, dropin.ConfigOptions{MergeDomains: true}); err == nil || !strings.Contains(err.Error(), `2.yaml:2:15: descriptor "a.k" is already configured`) {
		t.Errorf("error %v, want a duplicate descriptor", err)
	}
}

// Scalars have their meaning in YAML 1.1, and some settings have no effect.
func TestParse_Accepts(t *testing.T) {
	c := parse(t, `
domain: 5
unit: day
descriptors:
- key: on
  value: 010
  rate_limit: &d {unit: WEEK, requests_per_unit: 010}
  shadow_mode: yes
- key: a
  key: b
  rate_limit: {unlimited: on, requests_per_unit: 1_000}
- key: n
  value: null
  rate_limit: ~
  descriptors:
- key: m
  rate_limit: {<<: *d, unit: hour}
`)
	want := `5.on_010: unit=WEEK requests_per_unit=8, shadow_mode: true, quota_mode: false
5.b: unit=UNKNOWN requests_per_unit=1000, shadow_mode: false, quota_mode: false
5.m: unit=HOUR requests_per_unit=8, shadow_mode: false, quota_mode: false
`
	if got := c.Dump(); got != want {
		t.Errorf("dump:\n%s\nwant:\n%s", got, want)
	}
	if got, want := strings.Join(c.Warnings(), "; "), `rules.yaml:3:1: key "unit" has no effect here; rules.yaml:10:3: key "key" replaces an earlier one`; got != want {
		t.Errorf("warnings %q, want %q", got, want)
	}
}

func TestFromProto(t *testing.T) {
	limit := &rlsconf.RateLimitPolicy{Unit: rlsconf.RateLimitUnit_WEEK, RequestsPerUnit: 3, Name: "n"}
	c, err := dropin.FromProto([]*rlsconf.RateLimitConfig{{Name: "r", Domain: "a", Descriptors: []*rlsconf.RateLimitDescriptor{
		{Key: "k", Value: "v", Descriptors: []*rlsconf.RateLimitDescriptor{{Key: "l", RateLimit: limit, QuotaMode: true}}},
		{Key: "u", RateLimit: &rlsconf.RateLimitPolicy{Unlimited: true}},
	}}}, dropin.ConfigOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := "a.k_v.l: unit=WEEK requests_per_unit=3, shadow_mode: false, quota_mode: true\na.u: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false\n"
	if got := c.Dump(); got != want {
		t.Errorf("dump %q, want %q", got, want)
	}
	self := &rlsconf.RateLimitPolicy{Unit: 1, Name: "n", Replaces: []*rlsconf.RateLimitReplace{{Name: "n"}}}
	for _, tc := range []struct {
		config *rlsconf.RateLimitConfig
		want   string
	}{
		{&rlsconf.RateLimitConfig{}, "dropin: resource 0: the domain is missing"},
		{nil, "dropin: resource 0: the domain is missing"},
		{&rlsconf.RateLimitConfig{Name: "r", Domain: "a", Descriptors: []*rlsconf.RateLimitDescriptor{nil}}, "dropin: r: descriptors[0]: the descriptor has no key"},
		{&rlsconf.RateLimitConfig{Name: "r", Domain: "a", Descriptors: []*rlsconf.RateLimitDescriptor{{Key: "k", RateLimit: &rlsconf.RateLimitPolicy{}}}},
			`dropin: r: descriptors[0].rate_limit: unit "UNKNOWN" is unknown`},
		{&rlsconf.RateLimitConfig{Name: "r", Domain: "a", Descriptors: []*rlsconf.RateLimitDescriptor{{Key: "k", Descriptors: []*rlsconf.RateLimitDescriptor{{Key: "l", RateLimit: self}}}}},
			`dropin: r: descriptors[0].descriptors[0].rate_limit.replaces[0]: limit "n" replaces itself`},
	} {
		_, err := dropin.FromProto([]*rlsconf.RateLimitConfig{tc.config}, dropin.ConfigOptions{})
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("error %v, want %s", err, tc.want)
		}
	}
}
