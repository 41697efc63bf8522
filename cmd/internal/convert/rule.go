// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/policy"
)

// A Rule is a rule of the policy language, in the fields that conversions need. See
// doc/policy.md for their meaning.
type Rule struct {
	Name         string         `json:"name"`
	Description  string         `json:"description,omitempty"`
	Mode         string         `json:"mode,omitempty"`
	Group        string         `json:"group,omitempty"`
	LimitKeys    []string       `json:"limit_keys"`
	Match        map[string]any `json:"match,omitempty"`
	OnMissing    string         `json:"on_missing,omitempty"`
	OnStoreError string         `json:"on_store_error,omitempty"`
	Jitter       string         `json:"jitter,omitempty"`
	Algorithm    string         `json:"algorithm,omitempty"`
	Config       map[string]any `json:"algorithm_config,omitempty"`

	// Limits replaces Algorithm and Config in a rule with several limits. Each has a name,
	// an algorithm and its fields.
	Limits []map[string]any `json:"limits,omitempty"`

	// Within bounds the rule to a selector, beside its match. A match can include paths or
	// exclude paths. With Within it can do both.
	Within *Selector `json:"-"`

	at string // FILE:LINE of the limit; empty for a rule that only keeps requests from others
}

// A Selector is the selector of a policy in a bundle.
type Selector struct {
	Exact  []string `json:"pathExact,omitempty"`
	Prefix []string `json:"pathPrefix,omitempty"` // whole segments: /v1 is /v1 and all below /v1/
}

// Not returns a match value that holds for all values but these.
func Not(values ...string) map[string]any { return map[string]any{"not": oneOrMore(values)} }

// oneOrMore returns the only value, or all of them as a list.
func oneOrMore(values []string) any {
	if len(values) == 1 {
		return values[0]
	}
	return values
}

// ruleName returns a valid name of a rule that is like text and that no rule has.
func ruleName(rules []Rule, text string) string {
	base := strings.Trim(strings.Map(func(c rune) rune {
		if c <= ' ' || c > '~' {
			return '-'
		}
		return c
	}, text), "-")
	if base == "" {
		base = "rule"
	}
	taken := func(name string) bool { return slices.ContainsFunc(rules, func(r Rule) bool { return r.Name == name }) }
	name := base[:min(len(base), policy.MaxNameBytes)]
	for n := 2; taken(name); n++ {
		suffix := "-" + strconv.Itoa(n)
		name = base[:min(len(base), policy.MaxNameBytes-len(suffix))] + suffix
	}
	return name
}

// separate puts rules that have equal keys into groups of their own, unless their reader
// chose a group. Rules with equal keys and no group are tiers, and only one counts.
func separate(rules []Rule) {
	shared := map[string]int{}
	for _, r := range rules {
		shared[keySet(r.LimitKeys)]++
	}
	for i, r := range rules {
		if r.Group == "" && shared[keySet(r.LimitKeys)] > 1 {
			rules[i].Group = r.Name
		}
	}
}

// keySet returns the keys in a canonical order.
func keySet(keys []string) string {
	return strings.Join(slices.Sorted(slices.Values(keys)), "\n")
}

// rate returns the value of the rate field: n tokens every d.
func rate(n int64, d time.Duration) string { return fmt.Sprintf("%d/%s", n, span(d)) }

// span returns a duration as policies write it, in the largest unit that is exact.
func span(d time.Duration) string {
	units := []struct {
		unit time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}}
	for _, u := range units {
		if d >= u.unit && d%u.unit == 0 {
			return strconv.FormatInt(int64(d/u.unit), 10) + u.name
		}
	}
	return d.String()
}

// pathValue returns a value of a path clause for a literal path. It escapes the
// characters that the policy language does not take literally.
func pathValue(path string) string {
	return strings.NewReplacer("%", "%25", "*", "%2A", "{", "%7B", "}", "%7D", "<", "%3C", ">", "%3E",
		"?", "%3F", "#", "%23", "/:", "/%3A").Replace(path)
}
