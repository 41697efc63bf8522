// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"slices"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/policy"
)

// maxSampledRules bounds the rules that get an example request, because finding an example takes time.
const maxSampledRules = 256

func (a *API) serveRules(w http.ResponseWriter, r *http.Request) *api.Problem {
	query, p := parseQuery(r, "rule")
	if p != nil {
		return p
	}
	m, only := a.lim.Policy(), query.Get("rule")
	if m == nil {
		return serveJSON(w, emptyRules())
	}
	if only != "" && !slices.ContainsFunc(m.Rules(), func(r *policy.Rule) bool { return r.Name == only }) {
		return api.NewProblem(http.StatusNotFound, "the active policy has no such rule")
	}
	return serveJSON(w, rulesOf(m, a.canSeeKeys(r), only, a.lint.warnings(m)))
}

func emptyRules() api.Rules {
	return api.Rules{Scopes: []api.RuleScope{}, GlobalOverrides: []api.RuleOverride{}, Warnings: []api.RuleWarning{}, Attributes: []api.RuleAttribute{}}
}

func rulesOf(m *policy.Matcher, seesKeys bool, only string, warnings []policy.Warning) api.Rules {
	t := emptyRules()
	t.Version, t.Rules = m.Version(), len(m.Rules())
	if at := m.Expires(); !at.IsZero() {
		t.Expires = &at
	}
	for _, a := range m.Attributes() {
		if a.IsCaptured() { // no request has it
			continue
		}
		t.Attributes = append(t.Attributes, api.RuleAttribute{Name: a.String(), Secret: a.IsSecret()})
	}
	scopes, groups := map[int]int{}, map[int][2]int{} // positions in the tree
	descriptions := m.Describe()
	t.GlobalOverrides = globalOverrides(m, descriptions, seesKeys)
	for i, r := range m.Rules() {
		d := &descriptions[i]
		if only != "" && r.Name != only {
			continue
		}
		at, ok := scopes[d.Scope]
		if !ok {
			at = len(t.Scopes)
			scopes[d.Scope] = at
			t.Scopes = append(t.Scopes, api.RuleScope{ID: d.Policy, Selector: selectorOf(d, seesKeys), Groups: []api.RuleGroup{}})
		}
		scope := &t.Scopes[at]
		place, ok := groups[d.Group]
		if !ok {
			place = [2]int{at, len(scope.Groups)}
			groups[d.Group] = place
			scope.Groups = append(scope.Groups, api.RuleGroup{Name: d.GroupName})
		}
		n := ruleOf(r, d, seesKeys)
		n.Place = i + 1
		if only != "" || i < maxSampledRules {
			n.Example = exampleOf(m, i, d, seesKeys)
		}
		group := &scope.Groups[place[1]]
		group.Rules = append(group.Rules, n)
	}
	t.Warnings = append(t.Warnings, warningsOf(m, descriptions, warnings)...)
	return t
}

func ruleOf(r *policy.Rule, d *policy.Description, seesKeys bool) api.Rule {
	n := api.Rule{
		Name: r.Name, Description: r.Description, Mode: r.Mode.String(), Fallback: d.Fallback, LimitKeys: []string{}, Match: matchOf(d, seesKeys),
		OnMissing: d.OnMissing, OnStoreError: storeErrors[r.OnStoreError], Deadline: api.Seconds(r.Deadline),
		Headers: r.Headers.String(), Jitter: r.Jitter.String(), SlotBy: d.SlotBy, Facts: factsOf(nil, r.Facts()), Overrides: []api.RuleOverride{},
	}
	for _, a := range r.LimitKeys {
		n.LimitKeys = append(n.LimitKeys, a.Spelling())
	}
	for i := range r.Limits {
		n.Limits = append(n.Limits, limitOf(&r.Limits[i]))
	}
	for i := range d.Overrides {
		n.Overrides = append(n.Overrides, ruleOverrideOf(&d.Overrides[i], seesKeys))
	}
	return n
}

var storeErrors = map[policy.OnStoreError]string{policy.OnStoreErrorOpen: "open", policy.OnStoreErrorClosed: "closed", policy.OnStoreErrorLocal: "local"}

func limitOf(l *policy.Limit) api.RuleLimit {
	b, costs := l.Bucket, l.Costs()
	x := api.RuleLimit{
		Name: l.Name, Algorithm: prose.Algorithm(l), Words: prose.Limit(l), Capacity: api.Amount(b.Capacity()), Rate: prose.Rate(b),
		Refill: prose.Refill(b), Anchor: prose.Anchor(b), Start: api.Seconds(b.Start()),
		FullAfter: api.Seconds(b.TimeFor(b.Capacity())), Stages: []api.RuleStage{}, Shards: l.Shards, Leased: l.Leased,
		Cost: api.RuleCost{Source: costs.Source.String(), Default: api.Amount(costs.Default)},
	}
	switch a := b.Algorithm(); {
	case b.Queued():
		x.Queue = api.Amount(b.MaxReserved())
	case (a == bucket.AlgorithmContinuous || a == bucket.AlgorithmStepped) && b.Capacity()+b.MaxReserved() < bucket.Tokens((1<<53-1)/b.Unit()):
		most := api.Amount(b.MaxReserved())
		x.MaxReserved = &most
	}
	if costs.Min > 0 {
		least := api.Amount(costs.Min)
		x.Cost.Min = &least
	}
	if costs.Max < bucket.MaxTokens {
		most := api.Amount(costs.Max)
		x.Cost.Max = &most
	}
	for _, s := range l.Stages {
		x.Stages = append(x.Stages, api.RuleStage{At: s.Share, Delay: api.Seconds(s.Delay)})
	}
	x.Facts = []api.Fact{{Label: "Capacity", Value: b.Capacity().String()}, {Label: "Rate", Value: x.Rate}}
	if b.Queued() {
		x.Facts = append(x.Facts, api.Fact{Label: "Queue", Value: b.MaxReserved().String()})
	}
	x.Facts = factsOf(append(x.Facts, api.Fact{Label: "Full after", Value: prose.Duration(b.TimeFor(b.Capacity()))}), l.Facts())
	return x
}

func factsOf(list []api.Fact, facts []policy.Fact) []api.Fact {
	for _, f := range facts {
		list = append(list, api.Fact(f))
	}
	return list
}
