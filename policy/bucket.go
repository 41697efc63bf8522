// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/internal/spell"
)

// A KeyError says why a key is not that of a bucket that the policy has. It does not
// repeat the key, which may say who somebody is, but for the name of the limit.
type KeyError struct {
	Reason string // without the package, as in "no limit has the name \"fre\""
	Hint   string // what to do instead; may be empty
}

func (e *KeyError) Error() string {
	text := "policy: key of a bucket: " + e.Reason
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// A RuleError is the error of a rule that the policy does not have.
type RuleError struct {
	Name string
	Near string // the name of a rule that may be meant; may be empty
}

func (e *RuleError) Error() string {
	text := fmt.Sprintf("policy: no rule of the policy has the name %q", e.Name)
	if e.Near != "" {
		text += fmt.Sprintf("; did you mean %q?", e.Near)
	}
	return text
}

// Bucket finds what the policy says of one bucket by its key, as a [Match] has it:
// its rule, the limit that holds for it, with overrides, and what a request costs
// that says nothing. A key that lacks the tag of slot_by gets it. Match.Shadow, and
// the verdict's Block and Allow, are what goes for all requests that would spend
// from the bucket, whatever else is said of them; overrides that depend on more than
// the key are left out, also those that spare some of its requests from a Block by
// putting them in shadow.
//
// The error is a [KeyError]: the key is none that the policy makes, it has been cut
// short, or it does not say enough. The last is where an override puts another limit
// in force for values that begin in some way, and the key has a hash in the place of
// one.
func (m *Matcher) Bucket(key string, now bucket.Instant) (Match, Verdict, error) {
	parsed, err := ParseKey(key)
	if err != nil {
		return Match{}, Verdict{}, err
	}
	tag, limit, components := parsed.split()
	r, number, at := m.limitOfKeys(limit + limitEnd)
	if r == nil {
		return Match{}, Verdict{}, m.noLimit(limit)
	}
	if err := r.checkComponents(components); err != nil {
		return Match{}, Verdict{}, err
	}
	own, err := r.tagOf(components, tag)
	if err != nil {
		return Match{}, Verdict{}, err
	}
	found := Match{Rule: r, Limit: &r.Limits[at], Key: string(joinKey(own, r.Limits[at].prefix, components)), Shadow: r.Mode == ModeShadow}
	if r.Mode.Partial() {
		found.Shadow = r.Mode.spares(spread(r.Name, []byte(components)))
	}
	found.Cost = found.Limit.cost.fallback
	if m.exceptions == nil {
		return found, Verdict{}, nil
	}
	k := keyFacts{m: m, r: r, values: r.values(components), now: now}
	v, err := k.except(&found, number, at, components)
	found.Cost = found.Limit.cost.fallback
	return found, v, err
}

// Families returns the families of the keys that the limits of a rule make: see
// [store.Family]. A rule that the policy does not have is a [RuleError].
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

// limitOfKeys finds the limit whose keys begin like that: its rule, the number of
// that, and its own place in the rule. The rule is nil for none.
func (m *Matcher) limitOfKeys(prefix string) (r *Rule, number, at int) {
	for number, r := range m.rules {
		for at := range r.Limits {
			if r.Limits[at].prefix == prefix {
				return r, number, at
			}
		}
	}
	return nil, 0, 0
}

// noLimit says that no limit has the name that stands in a key, and which one may
// be meant.
func (m *Matcher) noLimit(prefix string) error {
	var names []string
	for _, r := range m.rules {
		for i := range r.Limits {
			names = append(names, strings.TrimSuffix(r.Limits[i].prefix, limitEnd))
		}
	}
	name, more := parse.Cut(prefix)
	e := &KeyError{Reason: fmt.Sprintf("no limit of the policy has the name %q%s, with which it begins", name, more)}
	if near := spell.Nearest(prefix, names); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return e
}

// checkComponents reports why r makes no key with these components.
func (r *Rule) checkComponents(components string) error {
	for _, c := range splitComponents(components) {
		if isCut(c) {
			return &KeyError{"it has been cut short: only its beginning is there, and a hash", "a decision's explanation has all of it"}
		}
	}
	if reason, hint := r.notAKey(components); reason != "" {
		hint = strings.TrimSuffix(hint, ", or say match") // which is for overrides
		if hint == "say match" {
			hint = "a decision's explanation has it"
		}
		return &KeyError{reason, hint}
	}
	return nil
}

// values are those of r's keys in components, which have been checked: without their
// labels.
func (r *Rule) values(components string) []string {
	values := splitComponents(components)
	for i, c := range values {
		_, values[i] = splitComponent(c)
	}
	return values
}

// tagOf returns the tag of a key with these components, which must be the given one
// where there is one.
func (r *Rule) tagOf(components, given string) (string, error) {
	own := ""
	if r.slotBy != nil {
		for i, value := range r.values(components) {
			if k := &r.keys[i]; k.slot == r.slotBy.slot {
				own = value
				if address, ok := addressOf(own); ok && k.bits > 0 {
					own = string(appendAddress(nil, address, r.slotBy.bits))
				}
			}
		}
	}
	if given != "" && given != own {
		return "", &KeyError{"what stands in braces before it is not the tag of such a key", "write it as an explanation shows it"}
	}
	return own, nil
}
