// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/policy"
)

// The attributes for a descriptor. Clients of /v1/take send the domain as envoy:domain and each entry as
// descriptor:KEY.
const (
	envoyDomain      = "envoy:domain"
	descriptorPrefix = "descriptor:"
)

// alwaysDenied is an attribute that no request has. A rule with this key and on_missing: deny denies all requests
// that it matches.
const alwaysDenied = "denied:always"

// maxEnvoyClauses bounds the clauses of a rule, and maxEnvoyValues the values of a clause, like the policy
// language.
const (
	maxEnvoyClauses = 16
	maxEnvoyValues  = 1024
)

// envoyWindows are the windows of envoyproxy/ratelimit. They are aligned to 1970-01-01 UTC.
var envoyWindows = map[string]time.Duration{
	"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
	"week": 7 * 24 * time.Hour, "month": 30 * 24 * time.Hour, "year": 365 * 24 * time.Hour,
}

// The fields that envoyproxy/ratelimit accepts. It rejects other fields.
var (
	envoyRootFields       = []string{"domain", "descriptors"}
	envoyDescriptorFields = []string{
		"key", "value", "rate_limit", "descriptors",
		"shadow_mode", "quota_mode", "detailed_metric", "value_to_metric", "share_threshold",
	}
	envoyLimitFields = []string{"unit", "requests_per_unit", "unlimited", "name", "replaces"}
)

var envoyShape = regexp.MustCompile(`(?m)^domain\s*:[\s\S]*^descriptors\s*:|^descriptors\s*:[\s\S]*^domain\s*:`)

var envoyReader = reader{"envoy", "a configuration file of envoyproxy/ratelimit in YAML", detectEnvoy, readEnvoy}

func detectEnvoy(data []byte) bool { return envoyShape.Match(data) }

// An envoyEntry is a descriptor in the file. A request must have the entries of its ancestors in the same order.
type envoyEntry struct {
	node       node
	key, value string // value ends with * for a wildcard and is "" for all values
	parent     *envoyEntry
	children   []*envoyEntry
}

type envoyFile struct {
	Result
	domain string
	keys   []string // all keys in the file

	descriptors, limits int
}

func readEnvoy(file string, data []byte) (Result, error) {
	d, err := parseDocument(file, data)
	if err != nil {
		return Result{}, err
	}
	r := envoyFile{domain: d.top().field("domain").text()}
	if err := onlyFields(d.top(), envoyRootFields); err != nil {
		return Result{}, err
	}
	if r.domain == "" {
		return Result{}, &Error{File: file, Reason: "the file has no domain"}
	}
	root := &envoyEntry{}
	if bad := r.load(root, d.top().field("descriptors")); bad != nil {
		bad.Recognized = []string{fmt.Sprintf("domain %q", r.domain), prose.Count(r.descriptors, "descriptor")}
		return Result{}, bad
	}
	for _, child := range sortSiblings(root.children) {
		r.convert(child)
	}
	r.Recognized = []string{fmt.Sprintf("domain %q", r.domain)}
	r.Recognize(r.descriptors, "descriptor")
	r.Recognize(r.limits, "limit")
	if err := r.dropUnreachable(); err != nil {
		return Result{}, err
	}
	r.addFileDifferences(file)
	return r.Result, nil
}

func onlyFields(n node, known []string) *Error {
	if _, ok := n.value.(map[string]any); !ok {
		return n.fail("want an object")
	}
	for _, f := range n.fields() {
		if !slices.Contains(known, f.key) {
			return f.fail("unknown field %q: the fields here are %s", f.key, strings.Join(known, ", "))
		}
	}
	return nil
}

// load reads a list of descriptors with the same validation as envoyproxy/ratelimit.
func (r *envoyFile) load(parent *envoyEntry, list node) *Error {
	for _, n := range list.items() {
		if err := onlyFields(n, envoyDescriptorFields); err != nil {
			return err
		}
		e := &envoyEntry{node: n, key: n.field("key").text(), value: n.field("value").text(), parent: parent}
		if e.key == "" {
			return n.fail("a descriptor has no key")
		}
		if slices.ContainsFunc(parent.children, func(other *envoyEntry) bool { return other.key == e.key && other.value == e.value }) {
			return n.fail("descriptor %s=%s is defined twice", e.key, e.value)
		}
		r.descriptors++
		if !slices.Contains(r.keys, e.key) {
			r.keys = append(r.keys, e.key)
		}
		if limit := n.field("rate_limit"); limit.exists {
			if err := checkEnvoyLimit(limit); err != nil {
				return err
			}
			r.limits++
		}
		parent.children = append(parent.children, e)
		if err := r.load(e, n.field("descriptors")); err != nil {
			return err
		}
	}
	return nil
}

func checkEnvoyLimit(n node) *Error {
	if err := onlyFields(n, envoyLimitFields); err != nil {
		return err
	}
	unit := n.field("unit")
	_, known := envoyWindows[strings.ToLower(unit.text())]
	switch unlimited := n.field("unlimited").isTrue(); {
	case unlimited && known:
		return unit.fail("a limit with unlimited: true has no unit")
	case !unlimited && !known:
		return unit.fail("unknown unit %q: want second, minute, hour, day, week, month or year", unit.text())
	}
	_, err := n.field("requests_per_unit").number()
	return err
}

// sortSiblings returns siblings in the order of envoyproxy/ratelimit: exact values, then wildcards in file order,
// then entries without a value.
func sortSiblings(siblings []*envoyEntry) []*envoyEntry {
	rank := func(e *envoyEntry) int {
		switch {
		case e.isWildcard():
			return 1
		case e.value == "":
			return 2
		}
		return 0
	}
	ordered := slices.Clone(siblings)
	slices.SortStableFunc(ordered, func(a, b *envoyEntry) int { return rank(a) - rank(b) })
	return ordered
}

func (e *envoyEntry) isWildcard() bool { return strings.HasSuffix(e.value, "*") }

// isCrowded reports whether an entry has more siblings than a clause can list.
func (e *envoyEntry) isCrowded() bool { return len(e.parent.children) > maxEnvoyValues }

// covers reports whether an entry takes requests from a later wildcard.
func (e *envoyEntry) covers(wildcard *envoyEntry) bool {
	a, b := strings.TrimSuffix(e.value, "*"), strings.TrimSuffix(wildcard.value, "*")
	return strings.HasPrefix(a, b) || e.isWildcard() && strings.HasPrefix(b, a)
}

// path returns the ancestors of an entry from the root, followed by the entry.
func (e *envoyEntry) path() []*envoyEntry {
	if e.parent == nil {
		return nil
	}
	return append(e.parent.path(), e)
}

// String returns the path as KEY=VALUE/KEY=VALUE.
func (e *envoyEntry) String() string {
	var parts []string
	for _, p := range e.path() {
		part := p.key
		if p.value != "" {
			part += "=" + p.value
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "/")
}

func (r *envoyFile) convert(e *envoyEntry) {
	if reason := unfitReason(e); reason != "" {
		r.Differ(e.node.position(), fmt.Sprintf("The descriptor %s %s", e, reason), "mete has no rule for it and for the descriptors below it.", "")
		return
	}
	if limit := e.node.field("rate_limit"); limit.exists {
		r.addRule(e, limit)
	} else if len(e.children) == 0 {
		r.Differ(e.node.position(), fmt.Sprintf("The descriptor %s has no rate_limit.", e), "mete has no rule for it. Both admit it.", "")
	}
	for _, child := range sortSiblings(e.children) {
		r.convert(child)
	}
}

// unfitReason returns why the policy language cannot express an entry, or "".
func unfitReason(e *envoyEntry) string {
	if _, err := policy.ParseAttribute(descriptorPrefix + e.key); err != nil {
		return "has a key that names no attribute."
	}
	if strings.Contains(strings.TrimSuffix(e.value, "*"), "*") {
		return "has a star inside its value."
	}
	if e.value == "" && strings.HasSuffix(e.key, "*") {
		return "has a wildcard as its key."
	}
	for p := e.parent; p != nil; p = p.parent {
		if p.key == e.key {
			return "has the key " + e.key + " twice."
		}
	}
	return ""
}

// addRule adds the rule for an entry with a limit. The rules of the domain are tiers, because a descriptor has at
// most one limit.
func (r *envoyFile) addRule(e *envoyEntry, limit node) {
	path := e.path()
	rule := Rule{Name: ruleName(r.Rules, r.domain+"/"+e.String()), Group: r.group(), LimitKeys: []string{}, Algorithm: "fixed_window", at: e.node.position()}
	number, _ := limit.field("requests_per_unit").number() // validated by load
	window := envoyWindows[strings.ToLower(limit.field("unit").text())]
	unlimited := limit.field("unlimited").isTrue()
	zero := !unlimited && number == 0
	rule.Match = r.clauses(e, zero)
	for _, p := range path {
		if !zero && (p.value == "" || p.isWildcard() && !p.node.field("share_threshold").isTrue()) {
			rule.LimitKeys = append(rule.LimitKeys, descriptorPrefix+p.key)
		}
	}
	switch {
	case unlimited:
		rule.Description = "Unlimited: the limit is too high to reach."
		rule.Config = unlimitedConfig()
	case zero:
		rule.Description = "requests_per_unit: 0 denies all requests. No request has the attribute of limit_keys."
		rule.LimitKeys, rule.OnMissing = []string{alwaysDenied}, "deny"
		rule.Config = map[string]any{"tokens": 1, "window": formatSpan(window)}
		r.Differ(limit.position(), "requests_per_unit: 0 denies all requests.", "mete denies them, too, with the status 403 in place of 429.", "")
	default:
		rule.Config = map[string]any{"tokens": number, "window": formatSpan(window)}
	}
	if e.node.field("shadow_mode").isTrue() || e.node.field("quota_mode").isTrue() {
		rule.Mode = "shadow"
	}
	r.addBlockers(e, rule, zero)
	r.Rules = append(r.Rules, rule)
	r.addLimitDifferences(e, limit)
}

// unlimitedConfig returns a limit that no client reaches. Requests that match a tier with this limit do not reach
// later tiers.
func unlimitedConfig() map[string]any { return map[string]any{"tokens": 1_000_000_000, "window": "1s"} }

// addBlockers adds unlimited rules before a rule with a wildcard in its path. An exact value or an earlier
// wildcard takes its requests from the wildcard even without a limit. An entry without a value counts as a
// wildcard if the limit is zero or if it has many siblings.
func (r *envoyFile) addBlockers(e *envoyEntry, rule Rule, zero bool) {
	keys := rule.LimitKeys
	if zero {
		keys = []string{}
	}
	for _, p := range e.path() {
		if !p.isWildcard() && !(p.value == "" && (zero || p.isCrowded())) {
			continue
		}
		for _, other := range sortSiblings(p.parent.children) {
			if other == p {
				break
			}
			if other.key != p.key || !other.covers(p) {
				continue
			}
			blocker := Rule{
				Name: ruleName(r.Rules, rule.Name+"-not-"+other.value), Group: rule.Group, LimitKeys: keys, Match: maps.Clone(rule.Match),
				Description: "The descriptor " + other.String() + " takes these requests.", Algorithm: "fixed_window", Config: unlimitedConfig(),
			}
			blocker.Match[descriptorPrefix+p.key] = other.value
			r.Rules = append(r.Rules, blocker)
		}
	}
}

func (r *envoyFile) group() string { return ruleName(nil, "envoy/"+r.domain) }

// clauses returns the match of an entry: its domain, the values in its path, and the absence of all other keys in
// the file. limit_keys require the entries without a value. A zero limit has no such keys, so its match requires
// the entries.
func (r *envoyFile) clauses(e *envoyEntry, zero bool) map[string]any {
	match := map[string]any{envoyDomain: r.domain}
	var own []string
	for _, p := range e.path() {
		own = append(own, p.key)
		switch {
		case p.value != "":
			match[descriptorPrefix+p.key] = p.value
		case zero || p.isCrowded():
			match[descriptorPrefix+p.key] = "*"
		default:
			var others []string
			for _, other := range p.parent.children {
				if other.key == p.key && other != p {
					others = append(others, other.value)
				}
			}
			if len(others) > 0 {
				match[descriptorPrefix+p.key] = Not(others...)
			}
		}
	}
	for _, key := range r.nearKeys(e) {
		if slices.Contains(own, key) {
			continue
		}
		if _, err := policy.ParseAttribute(descriptorPrefix + key); err != nil {
			continue
		}
		if len(match) == maxEnvoyClauses {
			r.Differ(e.node.position(), fmt.Sprintf("The descriptor %s takes no request with the entry %s.", e, key), "mete's rule takes it, because a rule has at most 16 clauses.", "")
			continue
		}
		match[descriptorPrefix+key] = Not("*")
	}
	return match
}

// nearKeys returns all keys, starting with the keys of e's children.
func (r *envoyFile) nearKeys(e *envoyEntry) []string {
	var keys []string
	for _, child := range e.children {
		if !slices.Contains(keys, child.key) {
			keys = append(keys, child.key)
		}
	}
	for _, key := range r.keys {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}
