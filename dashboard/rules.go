// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/policy"
)

// maxSampledRules bounds the rules of a policy for which an example of a request is
// looked for where all of them are asked about.
const maxSampledRules = 256

// A ruleTree is the policy in force as the page shows it: what GET data/rules answers.
type ruleTree struct {
	Version int64         `json:"version"` // its bundle_version, 0 for none
	Expires *time.Time    `json:"expires"` // null for never
	Rules   int           `json:"rules"`
	Scopes  []ruleScope   `json:"policies"` // in the order of the file
	General []ruleExcept  `json:"overrides"`
	Warned  []ruleWarning `json:"warnings"`

	// Attributes are all that rules look at.
	Attributes []ruleAttribute `json:"attributes"`
}

// A ruleAttribute is one that rules look at.
type ruleAttribute struct {
	Name   string `json:"name"`
	Secret bool   `json:"secret"` // its value may be a credential
}

// A ruleScope is one policy of a bundle, or all there is.
type ruleScope struct {
	ID       string       `json:"id"`       // empty for none
	Selector []ruleClause `json:"selector"` // which requests it is about; none is all
	Groups   []ruleGroup  `json:"groups"`
}

// A ruleGroup is rules of which the first that matches applies.
type ruleGroup struct {
	Name  string     `json:"name"` // of the file; empty for rules with the same limit_keys
	Rules []ruleNode `json:"rules"`
}

// A ruleNode is one rule. Durations are in seconds.
type ruleNode struct {
	Name         string       `json:"name"`
	Place        int          `json:"place"` // in the policy, from 1
	Description  string       `json:"description"`
	Mode         string       `json:"mode"`
	Fallback     bool         `json:"fallback"`
	LimitKeys    []string     `json:"limit_keys"`
	Match        []ruleClause `json:"match"`
	OnMissing    string       `json:"on_missing"`
	OnStoreError string       `json:"on_store_error"`
	Deadline     float64      `json:"deadline"`
	Headers      string       `json:"headers"` // empty: as the front door is configured
	Jitter       string       `json:"jitter"`  // empty: as the front door is configured
	SlotBy       string       `json:"slot_by"`
	Facts        []ruleFact   `json:"facts"` // what the rule does, in words
	Limits       []ruleLimit  `json:"limits"`
	Overrides    []ruleExcept `json:"overrides"`

	// Example is a request that falls under the rule and no earlier one of its group;
	// null where none is known, or where it would show what may be a credential.
	Example map[string]string `json:"example"`
}

// A ruleFact is one line about a rule or a limit, as package policy words it.
type ruleFact struct {
	Field   string `json:"field"` // of policy files; empty for what follows from several
	Label   string `json:"label"`
	Value   string `json:"value"`
	Notable bool   `json:"notable"` // neither a default nor in the words of the limit
}

// A ruleClause is what is wanted of one attribute.
type ruleClause struct {
	Attribute string `json:"attribute"`
	Wants     string `json:"wants"` // in words
}

// A ruleLimit is one limit of a rule.
type ruleLimit struct {
	Name      string      `json:"name"`
	Algorithm string      `json:"algorithm"` // as /v1/explain has it
	Words     string      `json:"words"`     // what it comes to
	Capacity  json.Number `json:"capacity"`
	Rate      string      `json:"rate"`   // as in "10/s"
	Refill    string      `json:"refill"` // as /v1/bucket has it
	Anchor    string      `json:"anchor"`
	Start     float64     `json:"start"`
	Queue     json.Number `json:"queue"`

	// MaxReserved bounds what reservations may owe; null where nothing but the
	// arithmetic does.
	MaxReserved *json.Number `json:"max_reserved"`

	FullAfter float64     `json:"full_after"` // an empty bucket is full
	Cost      ruleCost    `json:"cost"`
	Stages    []ruleStage `json:"stages"`
	Shards    int         `json:"shards"` // 0 for one bucket
	Leased    bool        `json:"leased"`
	Facts     []ruleFact  `json:"facts"` // all of its numbers, in words
}

// A ruleCost is what a request costs. Min and Max are null where there is none.
type ruleCost struct {
	Source  string       `json:"source"` // the attribute that says it, empty where it is fixed
	Default json.Number  `json:"default"`
	Min     *json.Number `json:"min"`
	Max     *json.Number `json:"max"`
}

// A ruleStage is what becomes of requests before nothing is left.
type ruleStage struct {
	At    string  `json:"at"`    // as in "80%"
	Delay float64 `json:"delay"` // 0 where they are only warned
}

// A ruleExcept is an override.
type ruleExcept struct {
	ID      string        `json:"id"`
	Action  policy.Action `json:"action"`
	About   string        `json:"about"` // which requests, as the file says it; as far as the viewer may know
	Reason  string        `json:"reason"`
	Author  string        `json:"author"`
	Expires time.Time     `json:"expires"`
}

// A ruleWarning is what is right in the policy and yet worth a look.
type ruleWarning struct {
	Code   string `json:"code"`
	Rule   string `json:"rule"` // empty where it is about something else
	Path   string `json:"path"`
	Reason string `json:"reason"`
	Hint   string `json:"hint"`
	Note   bool   `json:"note"` // no reason to change anything
}

// serveRules serves the policy in force; with ?rule=NAME, only that rule of it.
func (h *Handler) serveRules(w http.ResponseWriter, r *http.Request, v Viewer) error {
	m := h.config.Limiter.Policy()
	only := r.URL.Query().Get("rule")
	if m == nil {
		return answerJSON(w, ruleTree{Scopes: []ruleScope{}, General: []ruleExcept{}, Warned: []ruleWarning{}, Attributes: []ruleAttribute{}})
	}
	if only != "" && !slices.ContainsFunc(m.Rules(), func(r *policy.Rule) bool { return r.Name == only }) {
		return refuse(http.StatusNotFound, "the policy in force has no such rule")
	}
	return answerJSON(w, treeOf(m, v, only, h.lint.warnings(m)))
}

// treeOf describes m, or only one rule of it.
func treeOf(m *policy.Matcher, v Viewer, only string, warnings []policy.Warning) ruleTree {
	t := ruleTree{
		Version: m.Version(), Rules: len(m.Rules()), Scopes: []ruleScope{}, General: []ruleExcept{}, Warned: []ruleWarning{}, Attributes: []ruleAttribute{},
	}
	if at := m.Expires(); !at.IsZero() {
		t.Expires = &at
	}
	for _, a := range m.Attributes() {
		t.Attributes = append(t.Attributes, ruleAttribute{a.String(), a.Secret()})
	}
	scopes, groups := map[int]int{}, map[int][2]int{} // where they stand in the tree
	descriptions := m.Describe()
	t.General = generalExceptions(m, descriptions, v)
	for i, r := range m.Rules() {
		d := &descriptions[i]
		if only != "" && r.Name != only {
			continue
		}
		at, ok := scopes[d.Scope]
		if !ok {
			at = len(t.Scopes)
			scopes[d.Scope] = at
			t.Scopes = append(t.Scopes, ruleScope{ID: d.Policy, Selector: clausesOf(d, true, v), Groups: []ruleGroup{}})
		}
		scope := &t.Scopes[at]
		place, ok := groups[d.Group]
		if !ok {
			place = [2]int{at, len(scope.Groups)}
			groups[d.Group] = place
			scope.Groups = append(scope.Groups, ruleGroup{Name: d.GroupName})
		}
		n := nodeOf(r, d, v)
		n.Place = i + 1
		if only != "" || i < maxSampledRules {
			n.Example = exampleOf(m, i, d, v)
		}
		group := &scope.Groups[place[1]]
		group.Rules = append(group.Rules, n)
	}
	t.warn(m, descriptions, warnings)
	return t
}

// nodeOf describes a rule.
func nodeOf(r *policy.Rule, d *policy.Description, v Viewer) ruleNode {
	n := ruleNode{
		Name: r.Name, Description: r.Description, Mode: r.Mode.String(), Fallback: d.Fallback, LimitKeys: []string{}, Match: clausesOf(d, false, v),
		OnMissing: d.OnMissing, OnStoreError: storeErrors[r.OnStoreError], Deadline: r.Deadline.Seconds(),
		Headers: r.Headers.String(), Jitter: r.Jitter.String(), SlotBy: d.SlotBy, Facts: factsOf(nil, r.Facts()), Overrides: []ruleExcept{},
	}
	for _, a := range r.LimitKeys {
		n.LimitKeys = append(n.LimitKeys, a.Spelled())
	}
	for i := range r.Limits {
		n.Limits = append(n.Limits, limitOf(&r.Limits[i]))
	}
	for i := range d.Overrides {
		n.Overrides = append(n.Overrides, exceptOf(&d.Overrides[i], v))
	}
	return n
}

// storeErrors are the words of policy files.
var storeErrors = map[policy.OnStoreError]string{policy.StoreErrorOpen: "open", policy.StoreErrorClosed: "closed", policy.StoreErrorLocal: "local"}

func limitOf(l *policy.Limit) ruleLimit {
	b, costs := l.Bucket, l.Costs()
	x := ruleLimit{
		Name: l.Name, Algorithm: prose.Algorithm(l), Words: prose.Limit(l), Capacity: amount(b.Capacity()), Rate: prose.Rate(b), Queue: "0",
		Refill: prose.Refill(b), Anchor: prose.Anchor(b), Start: b.Start().Seconds(),
		FullAfter: b.TimeFor(b.Capacity()).Seconds(), Stages: []ruleStage{}, Shards: l.Shards, Leased: l.Leased,
		Cost: ruleCost{Source: costs.Source.String(), Default: amount(costs.Default)},
	}
	switch a := b.Algorithm(); {
	case b.Queued():
		x.Queue = amount(b.MaxReserved())
	case (a == bucket.Continuous || a == bucket.Stepped) && b.Capacity()+b.MaxReserved() < bucket.Tokens((1<<53-1)/b.Unit()):
		most := amount(b.MaxReserved())
		x.MaxReserved = &most
	}
	if costs.Min > 0 {
		least := amount(costs.Min)
		x.Cost.Min = &least
	}
	if costs.Max < bucket.MaxTokens {
		most := amount(costs.Max)
		x.Cost.Max = &most
	}
	for _, s := range l.Stages {
		x.Stages = append(x.Stages, ruleStage{s.Share, s.Delay.Seconds()})
	}
	x.Facts = []ruleFact{{Label: "Capacity", Value: b.Capacity().String()}, {Label: "Rate", Value: x.Rate}}
	if b.Queued() {
		x.Facts = append(x.Facts, ruleFact{Label: "Queue", Value: b.MaxReserved().String()})
	}
	x.Facts = factsOf(append(x.Facts, ruleFact{Label: "Full after", Value: prose.Duration(b.TimeFor(b.Capacity()))}), l.Facts())
	return x
}

// factsOf appends facts to list.
func factsOf(list []ruleFact, facts []policy.Fact) []ruleFact {
	for _, f := range facts {
		list = append(list, ruleFact(f))
	}
	return list
}
