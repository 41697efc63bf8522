// SPDX-License-Identifier: Apache-2.0

package grpclimit

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/ownlimit"
	"github.com/metehq/mete/policy"
)

// A MethodLimit limits the calls of some methods, with or without a policy. A call is charged by all limits or by
// none. [mete.Config] determines what happens if the store is unavailable.
type MethodLimit struct {
	// Name identifies the limit to callers. It must be unique and at most 64 bytes, as the name of a rule. It is
	// part of the bucket's key: interceptors with the same store and name share buckets.
	Name string

	// Methods are full methods, "/package.Service/Method", or prefixes, "/package.Service/*". "*" matches every
	// method. At least one is required.
	Methods []string

	// Key determines which calls share a bucket. It is required: [By] or [Everyone].
	Key Key

	// Rate is the refill rate, as in policies: "100/1m", "0.5/10s". It is required without Bucket.
	// [bucket.ParseRate] documents the grammar and the bounds.
	Rate string

	// Burst is the maximum number of calls at one instant, at least 1. It is required with Rate.
	Burst int

	// Bucket is a limit with another algorithm. It replaces Rate and Burst; setting both is an error.
	Bucket bucket.Limit

	// Cost is the cost of a call in whole tokens. Zero means 1. A cost that can never pass is an error.
	Cost int

	// Shards splits every bucket: see [mete.Charge]. At most [policy.MaxShards].
	Shards int
}

// MaxMethodLimits bounds the method limits of an interceptor.
const MaxMethodLimits = 16

// A Key determines which calls share a bucket. The zero Key is invalid: sharing must be an explicit choice.
type Key struct {
	names []string
	set   bool
}

// By uses one bucket per combination of values of the attributes, named as in a policy: By("ip:address"),
// By("header:x-api-key", "tenant"). A call without one of them is denied, because it could otherwise bypass the
// limit.
func By(attributes ...string) Key { return Key{names: attributes, set: len(attributes) > 0} }

// Everyone uses one bucket for all callers.
func Everyone() Key { return Key{names: []string{}, set: true} }

var keyPrefix = policy.OwnKeyPrefix("grpc")

// A methodTable finds the limits of a method. It is a policy: its rules match calls and build keys, and the
// limits come from the [MethodLimit] with the rule's name.
type methodTable struct {
	matcher *policy.Matcher
	entries map[*policy.Rule]*methodEntry
}

type methodEntry struct {
	rule   *policy.Rule
	limit  policy.Limit // the actual limit
	cost   mete.Tokens
	shards int
}

type methodRule struct {
	Name      string              `json:"name"`
	Group     string              `json:"group"` // unique, so that all rules apply
	LimitKeys []string            `json:"limit_keys"`
	Match     map[string][]string `json:"match,omitempty"`
	OnMissing string              `json:"on_missing"`
	Algorithm string              `json:"algorithm"`
	Config    map[string]int      `json:"algorithm_config"`
}

// newMethodTable compiles limits. It returns nil if there are none. The error lists every invalid limit.
func newMethodTable(limits []MethodLimit, hashKey []byte, limiter *mete.Limiter) (*methodTable, error) {
	if len(limits) == 0 {
		return nil, nil
	}
	if len(limits) > MaxMethodLimits {
		return nil, fmt.Errorf("%d method limits: at most %d are allowed", len(limits), MaxMethodLimits)
	}
	var errs []error
	rules := make([]methodRule, len(limits))
	buckets := make([]bucket.Limit, len(limits))
	for i, l := range limits {
		var err error
		buckets[i], err = l.compile()
		errs = append(errs, err)
		rules[i] = l.rule()
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	text, err := json.Marshal(map[string]any{"rules": rules})
	if err != nil {
		return nil, err
	}
	m, err := policy.Load(text, policy.Options{HashKey: hashKey})
	if err != nil {
		return nil, fmt.Errorf("method limits: %w", err)
	}
	if m.NeedsHashKey() && limiter != nil {
		key, err := limiter.HashKey()
		if err != nil {
			return nil, fmt.Errorf("method limits: %w", err)
		}
		m = m.WithHashKey(key)
	}
	t := &methodTable{matcher: m, entries: map[*policy.Rule]*methodEntry{}}
	for i, r := range m.Rules() {
		t.entries[r] = limits[i].entry(r, buckets[i])
	}
	return t, nil
}

func (l *MethodLimit) compile() (bucket.Limit, error) {
	switch {
	case len(l.Methods) == 0:
		return bucket.Limit{}, fmt.Errorf("method limit %q: methods are required: use \"*\" for every method", l.Name)
	case !l.Key.set:
		return bucket.Limit{}, fmt.Errorf("method limit %q: a key is required: By or Everyone", l.Name)
	}
	limit, err := ownlimit.Limit(l.Rate, l.Burst, l.Bucket)
	if err == nil {
		err = ownlimit.Check(limit, ownlimit.Whole(l.Cost), l.Shards)
	}
	if err != nil {
		return bucket.Limit{}, fmt.Errorf("method limit %q: %w", l.Name, err)
	}
	return limit, nil
}

func (l *MethodLimit) rule() methodRule {
	return methodRule{
		Name: l.Name, Group: l.Name, LimitKeys: l.Key.names, OnMissing: "deny",
		Algorithm: "token_bucket", Config: map[string]int{"rps": 1, "burst": 1}, // placeholder; not used
		Match: map[string][]string{"path": l.Methods},
	}
}

func (l *MethodLimit) entry(r *policy.Rule, limit bucket.Limit) *methodEntry {
	return &methodEntry{rule: r, cost: mete.TokensOf(ownlimit.Cost(ownlimit.Whole(l.Cost))), shards: l.Shards,
		limit: policy.Limit{Name: l.Name, Reason: limit.Reason(), Bucket: limit}}
}

// charges returns the charges of a call. missing is a rule that denies the call because it lacks an attribute.
func (t *methodTable) charges(attrs policy.Attributes) (charges []mete.Charge, entries []*methodEntry, missing *policy.Rule) {
	if t == nil {
		return nil, nil, nil
	}
	var space [MaxMethodLimits]policy.Match
	matches, verdict := t.matcher.Match(space[:0], attrs, 0, 0)
	if verdict.Missing != nil || len(matches) == 0 {
		return nil, nil, verdict.Missing
	}
	charges, entries = make([]mete.Charge, len(matches)), make([]*methodEntry, len(matches))
	for i, m := range matches {
		e := t.entries[m.Rule]
		charges[i], entries[i] = mete.Charge{Key: keyPrefix + m.Key, Limit: e.limit.Bucket, Cost: e.cost, Shards: e.shards}, e
	}
	return charges, entries, nil
}

// setNames sets the rules and limits of entries in d. The limiter reports them in order.
func setNames(d *mete.Decision, entries []*methodEntry) {
	for i := range d.Limits() {
		s := &d.Limits()[i]
		if len(entries) > 0 && (s.Rule == nil || s.Rule.Name == "") {
			s.Rule, s.Limit, entries = entries[0].rule, &entries[0].limit, entries[1:]
		}
	}
	if decider := d.Decider(); decider != nil {
		d.Rule = decider.Rule.Name
	}
}
