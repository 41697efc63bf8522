// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/internal/spell"
)

// A KeyError reports why the policy has no bucket with a key. Its text contains the name of the limit, but not the
// rest of the key, which may identify a client.
type KeyError struct {
	Reason string // without the package, as in "no limit has the name \"fre\""
	Hint   string // the remedy; may be empty
}

func (e *KeyError) Error() string {
	text := "policy: bucket key: " + e.Reason
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// A RuleError reports that the policy has no rule with a name.
type RuleError struct {
	Name string
	Near string // a rule with a similar name; may be empty
}

func (e *RuleError) Error() string {
	text := fmt.Sprintf("policy: the policy has no rule named %q", e.Name)
	if e.Near != "" {
		text += fmt.Sprintf("; did you mean %q?", e.Near)
	}
	return text
}

// Bucket looks up the bucket with a key, as in [Match.Key]: its rule, its limit with overrides applied, and the
// default cost of a request. If key lacks the tag of slot_by, Bucket adds it.
//
// If rules share the bucket, the result has the first of them and its cost.
//
// Match.Shadow and the Block and Allow of the verdict hold for all requests that spend from the bucket. Bucket
// ignores overrides that depend on more than the key, including shadow overrides that exempt some requests from a
// Block.
//
// The error is a [KeyError]: the policy cannot produce the key, or the key is truncated or ambiguous. A
// key is ambiguous if it contains the hash of a value, and an override replaces the limit for values with a prefix.
func (m *Matcher) Bucket(key string, now bucket.Instant) (Match, Verdict, error) {
	parsed, err := ParseKey(key)
	if err != nil {
		return Match{}, Verdict{}, err
	}
	tag, limit, components := parsed.split()
	r, number, at := m.findLimitByKey(limit + limitEnd)
	if r == nil {
		return Match{}, Verdict{}, m.unknownLimitError(limit)
	}
	if err := r.checkComponents(components); err != nil {
		return Match{}, Verdict{}, err
	}
	own, err := r.checkTag(components, tag)
	if err != nil {
		return Match{}, Verdict{}, err
	}
	found := Match{Rule: r, Limit: &r.Limits[at], Key: string(joinKey(own, r.Limits[at].prefix, components)), Shadow: r.Mode == ModeShadow}
	if r.Mode.IsPartial() {
		found.Shadow = r.Mode.exempts(spreadKey(r.limitBase(), []byte(components)))
	}
	found.Cost = found.Limit.cost.fallback
	if m.exceptions == nil {
		return found, Verdict{}, nil
	}
	k := keyFacts{m: m, r: r, values: r.keyValues(components), now: now}
	v, err := k.applyOverrides(&found, number, at, components)
	found.Cost = found.Limit.cost.fallback
	return found, v, err
}

// Families returns the key families of the limits of a rule: see [store.Family]. If the policy has no such rule,
// the error is a [RuleError].
func (m *Matcher) Families(rule string) ([]string, error) {
	names := make([]string, len(m.rules))
	for i, r := range m.rules {
		if names[i] = r.Name; r.Name != rule {
			continue
		}
		families := make([]string, len(r.Limits))
		for j := range r.Limits {
			families[j] = r.Limits[j].prefix
		}
		return families, nil
	}
	return nil, &RuleError{Name: rule, Near: spell.Nearest(rule, names)}
}

// findLimitByKey returns the limit with a key prefix: its rule, the rule's number, and the limit's index in the
// rule. The rule is nil if no limit has the prefix.
func (m *Matcher) findLimitByKey(prefix string) (r *Rule, number, at int) {
	for number, r := range m.rules {
		for at := range r.Limits {
			if r.Limits[at].prefix == prefix {
				return r, number, at
			}
		}
	}
	return nil, 0, 0
}

// unknownLimitError reports that no limit has the name in a key, and suggests a similar name.
func (m *Matcher) unknownLimitError(prefix string) error {
	var names []string
	for _, r := range m.rules {
		for i := range r.Limits {
			names = append(names, strings.TrimSuffix(r.Limits[i].prefix, limitEnd))
		}
	}
	name, more := parse.Cut(prefix)
	e := &KeyError{Reason: fmt.Sprintf("the policy has no limit named %q%s", name, more)}
	if near := spell.Nearest(prefix, names); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return e
}

func (r *Rule) checkComponents(components string) error {
	for _, c := range splitComponents(components) {
		if isCut(c) {
			return &KeyError{"it is truncated and ends with a hash", "copy the full key from the explanation of a decision"}
		}
	}
	if reason, hint := r.checkKey(components); reason != "" {
		hint = strings.TrimSuffix(hint, ", or use match") // the hint is for overrides
		if hint == "use match" {
			hint = "copy it from the explanation of a decision"
		}
		return &KeyError{reason, hint}
	}
	return nil
}

// keyValues returns the values of valid components, without their labels.
func (r *Rule) keyValues(components string) []string {
	values := splitComponents(components)
	for i, c := range values {
		_, values[i] = splitComponent(c)
	}
	return values
}

// checkTag returns the tag of a key with these components. If given is set, it must equal the tag.
func (r *Rule) checkTag(components, given string) (string, error) {
	own := ""
	if r.slotBy != nil {
		for i, value := range r.keyValues(components) {
			if k := &r.keys[i]; k.slot == r.slotBy.slot {
				own = value
				if address, ok := addressOf(own); ok && k.bits > 0 {
					own = string(appendAddress(nil, address, r.slotBy.bits))
				}
			}
		}
	}
	if given != "" && given != own {
		return "", &KeyError{"the tag in braces does not belong to the key", "copy it from the explanation of a decision"}
	}
	return own, nil
}
