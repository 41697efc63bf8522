// SPDX-License-Identifier: Apache-2.0

// Package lint finds valid but probably unintended parts of a policy. Examples are rules that a client evades by
// omitting a header, limits that are never reached, and costs that no bucket holds. Each kind of warning has a
// stable code: see [Kinds].
package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/internal/inspect"
	"github.com/metehq/mete/policy/internal/space"
)

const (
	// maxFindings bounds the warnings per kind.
	maxFindings = 100

	// maxLintLooks bounds the pairs of rules that each kind of check compares.
	maxLintLooks = 1 << 20

	// maxClientLooks replaces maxLintLooks for checks of clients and tiers, because their comparisons are more
	// expensive.
	maxClientLooks = 1 << 16

	// maxLintWeight bounds the values, counted by [space.Box.Weight], in files with rules that are compared across
	// groups.
	maxLintWeight = 1 << 15
)

// Check returns the warnings about a policy: the warnings of the parser, and the findings in the rules. They are in
// the order of the rules, the overrides and the tests. now is for overrides that last too long.
func Check(m *policy.Matcher, now time.Time) []policy.Warning {
	in := m.Inspect()
	l := linter{
		now: now, space: in.Space, attributes: m.SlotAttributes(), slots: map[string]int{}, overrides: in.Overrides,
		groups: map[int][]*rule{}, scopes: map[int][]*rule{}, counts: map[string]int{}, found: m.Warnings(),
	}
	for slot, a := range l.attributes {
		l.slots[a.String()] = slot
	}
	for i, r := range m.Rules() {
		for j := range in.Rules[i].Alternatives {
			d := &rule{Rule: r, view: &in.Rules[i], Alternative: &in.Rules[i].Alternatives[j]}
			if j == 0 {
				l.all = append(l.all, d)
			}
			if d.Mode < policy.ModeShadow {
				l.rules, l.groups[d.Group], l.scopes[d.Scope] = append(l.rules, d), append(l.groups[d.Group], d), append(l.scopes[d.Scope], d)
			}
		}
	}
	for _, kind := range []func(){l.checkModes, l.checkAlternatives, l.checkTemplates, l.checkKeys, l.checkBypasses, l.checkCosts, l.checkResponses, l.checkTokens, l.checkWeeks, l.checkContradictions, l.checkOverlaps, l.checkCatchAlls, l.checkLongOverrides} {
		l.looks = 0
		kind()
	}
	for _, kind := range []func(){l.checkQueues, l.checkPenalties, l.checkUnverifiedKeys, l.checkHiddenTiers, l.checkClientTiers, l.checkClientAllows, l.checkSpellings} {
		l.looks = maxLintLooks - maxClientLooks
		kind()
	}
	sortByPlace(l.found)
	return l.found
}

type linter struct {
	now        time.Time
	space      *space.Space
	attributes []policy.Attribute // by slot
	slots      map[string]int     // by attribute
	overrides  []inspect.Override

	all    []*rule         // with the first alternative of each rule
	rules  []*rule         // that can deny requests, one for each alternative
	groups map[int][]*rule // of rules
	scopes map[int][]*rule // of rules, by policy in the bundle
	looks  int             // comparisons of the current check
	counts map[string]int  // of findings, by code
	found  []policy.Warning
}

type view = inspect.Rule

// A rule is one alternative of a rule.
type rule struct {
	*policy.Rule
	*view
	*inspect.Alternative
}

// countLook reports whether one more pair of rules may be compared.
func (l *linter) countLook() bool {
	l.looks++
	return l.looks <= maxLintLooks
}

func (l *linter) warn(path, code, reason, hint string) {
	w := policy.Warning{Path: path, Code: code, Reason: reason, Hint: hint}
	if n := len(l.found); n > 0 && l.found[n-1] == w { // the same of another alternative
		return
	}
	if l.counts[code]++; l.counts[code] <= maxFindings {
		l.found = append(l.found, w)
	}
}

func (d *rule) limit(i int) (*policy.Limit, *inspect.Limit) {
	return &d.Rule.Limits[i], &d.view.Limits[i]
}

func (d *rule) keyPath(i int) string { return d.Path + "/limit_keys/" + strconv.Itoa(i) }

func (l *linter) checkModes() {
	for _, d := range l.all {
		if d.Mode == policy.ModeOff {
			l.warn(d.Path, "rule-off", fmt.Sprintf("rule %q is off and has no effect", d.Name), "remove it, or use mode: shadow to see what it would do")
		}
	}
}

// checkAlternatives finds alternatives of a match that an earlier alternative of the rule contains.
func (l *linter) checkAlternatives() {
	for _, d := range l.all {
		list := d.view.Alternatives
		for j := range list {
			for i := range list[:j] {
				if !l.countLook() {
					return
				}
				if l.space.Within(list[j].Takes, list[i].Takes) {
					l.warn(d.Path+"/match/"+strconv.Itoa(j), "idle-alternative", fmt.Sprintf("alternative %d of the match of rule %q matches only requests that alternative %d matches", j+1, d.Name, i+1), "remove it")
					break
				}
			}
		}
	}
}

// checkCosts finds limits with costs above their capacity.
func (l *linter) checkCosts() {
	for _, d := range l.all {
		for i := range d.view.Limits {
			limit, at := d.limit(i)
			k, most := limit.Costs(), maxCost(limit)
			if limit.FixedCost() || k.ResponseField != "" || k.BytesPerToken > 0 { // a response may leave a debt
				continue
			}
			if k.Max != bucket.MaxTokens && k.Max > most {
				l.warn(at.Fields+"/max_cost", "impossible-cost", fmt.Sprintf("limit %q admits a cost of %v at most: requests that cost more, up to the max_cost of %v, are never admitted",
					limit.Name, most, k.Max), fmt.Sprintf("set max_cost: %v", most))
			}
			if in := min(max(k.Default, k.Min), k.Max); at.Defaults && in != k.Default {
				l.warn(at.Fields+"/default_cost", "clamped-cost", fmt.Sprintf("a default_cost of %v is not between min_cost and max_cost: requests cost %v", k.Default, in),
					fmt.Sprintf("set default_cost: %v", in))
			}
		}
	}
}

// checkResponses finds rules that depend on responses, but that read an attribute which only requests of Envoy have.
func (l *linter) checkResponses() {
	for _, d := range l.all {
		awaits := slices.ContainsFunc(d.Rule.Limits, func(l policy.Limit) bool { return l.AwaitsResponse() })
		if !awaits && !d.Rule.HoldsSlots() || d.Mode == policy.ModeOff {
			continue
		}
		at := slices.IndexFunc(d.LimitKeys, isOfEnvoy)
		clause := slices.IndexFunc(d.Clauses, func(c inspect.Clause) bool { return isOfEnvoy(l.attributes[c.Slot]) })
		if at < 0 && clause < 0 {
			continue
		}
		if d.Rule.HoldsSlots() {
			l.warn(d.Path, "unseen-response", fmt.Sprintf("rule %q limits concurrency, but Envoy reports no end of a request: each slot is held for its whole lease", d.Name),
				"limit these requests in a gateway or middleware of mete, or set a short lease")
			continue
		}
		l.warn(d.Path, "unseen-response", fmt.Sprintf("rule %q is charged by responses, but Envoy reports none: every request keeps its charge", d.Name),
			"remove charge_on, or limit these requests in a gateway or middleware of mete")
	}
}

// checkTokens finds limits of tokens in rules that also match requests which are not to a language model.
func (l *linter) checkTokens() {
	for _, d := range l.rules {
		narrow := func(c inspect.Clause) bool {
			a := l.attributes[c.Slot]
			return a.Source == policy.SourceAI || a.Source == policy.SourcePath
		}
		if !slices.ContainsFunc(d.Rule.Limits, func(l policy.Limit) bool { return l.AI() }) || slices.ContainsFunc(d.Clauses, narrow) || d.Rule.IsGuard() {
			continue
		}
		l.warn(d.Path, "unmatched-tokens", fmt.Sprintf("rule %q counts tokens, but it also applies to requests that are not to a language model", d.Name),
			`set match: { "ai:model": "*" }, or match the paths of the API`)
	}
}

func isOfEnvoy(a policy.Attribute) bool {
	return strings.HasPrefix(a.String(), "envoy:") || strings.HasPrefix(a.String(), "descriptor:")
}

func maxCost(l *policy.Limit) bucket.Tokens {
	most := l.Bucket.Capacity()
	if l.Bucket.Queued() || most == 0 {
		most += l.Bucket.MaxReserved()
	}
	return most
}

// checkWeeks finds weekly windows that begin on Thursdays because the file sets no start.
func (l *linter) checkWeeks() {
	for _, d := range l.all {
		for i := range d.view.Limits {
			limit, at := d.limit(i)
			b := limit.Bucket
			if b.Algorithm() != bucket.AlgorithmStepped || b.Anchor() != bucket.AnchorEpoch || b.Start() != 0 || at.Starts {
				continue
			}
			if _, p := b.Refill(); p%(7*24*3600*1e6) == 0 {
				l.warn(at.Fields, "week-start", fmt.Sprintf("the weeks of limit %q begin on Thursdays at 0:00 UTC, because 1970 did", limit.Name), `set start: "4d" for Mondays`)
			}
		}
	}
}

// checkLongOverrides finds overrides that are practically permanent.
func (l *linter) checkLongOverrides() {
	const long = 90 * 24 // hours
	for _, o := range l.overrides {
		if hours := o.ExpiresAt.Sub(l.now).Hours(); hours > long {
			l.warn(o.Path+"/expires_at", "long-override", fmt.Sprintf("the override stays active for another %d days", int(hours/24)), "write a permanent exception as a rule, or end the override earlier")
		}
	}
}
