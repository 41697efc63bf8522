// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/policy"
)

// A Rule is a rule of the policy language with the fields that conversions need. doc/policy.md describes them.
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

	// Config has the fields of the limit. A file has them as fields of the rule.
	Config map[string]any `json:"-"`

	// Limits replaces Algorithm and Config in a rule with several limits. Each limit has a name, an algorithm and
	// its fields.
	Limits []map[string]any `json:"limits,omitempty"`

	// Within restricts the rule to a selector in addition to its match. A match can only include paths or exclude
	// paths, and Within allows both.
	Within *Selector `json:"-"`

	at string // FILE:LINE of the limit; empty for a rule without a limit
}

type Selector struct {
	Exact  []string `json:"pathExact,omitempty"`
	Prefix []string `json:"pathPrefix,omitempty"` // whole segments: /v1 is /v1 and all below /v1/
}

// MarshalJSON writes the rule in the short form: with the fields of its limit.
func (r Rule) MarshalJSON() ([]byte, error) {
	type fields Rule
	text, err := json.Marshal(fields(r))
	if err != nil || len(r.Config) == 0 {
		return text, err
	}
	config, err := json.Marshal(r.Config)
	return append(append(text[:len(text)-1], ','), config[1:]...), err
}

// Not returns a match value for all values except these.
func Not(values ...string) map[string]any { return map[string]any{"not": oneOrMore(values)} }

func oneOrMore(values []string) any {
	if len(values) == 1 {
		return values[0]
	}
	return values
}

// ruleName returns a valid and unused rule name that resembles text.
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

// separateRules puts rules with equal keys into different groups, unless their reader has set a group. In one
// group they would be tiers, and only one would apply.
func separateRules(rules []Rule) {
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

func keySet(keys []string) string {
	return strings.Join(slices.Sorted(slices.Values(keys)), "\n")
}

func formatRate(n int64, d time.Duration) string { return fmt.Sprintf("%d/%s", n, formatSpan(d)) }

// formatSpan formats a duration in the largest exact unit, as policies write it.
func formatSpan(d time.Duration) string {
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

// pathValue returns a path clause value for a literal path. It escapes characters with a special meaning.
func pathValue(path string) string {
	return strings.NewReplacer("%", "%25", "*", "%2A", "{", "%7B", "}", "%7D", "<", "%3C", ">", "%3E",
		"?", "%3F", "#", "%23", "/:", "/%3A").Replace(path)
}
