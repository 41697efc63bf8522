// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// verdict says in a sentence what becomes of the request, and why.
func verdict(e *mete.Explanation) string {
	d := &e.Decision
	decider := d.Decider()
	switch {
	case d.Override != nil && d.Allowed:
		return "allowed: " + because(d.Override)
	case d.Override != nil:
		return "denied: " + because(d.Override)
	case d.Reason == mete.ReasonMissingAttribute:
		return fmt.Sprintf("denied by rule %s: %s, and the rule says on_missing: deny", d.Rule, lacked(e))
	case d.Reason == mete.ReasonStoreError:
		return fmt.Sprintf("denied%s: the store does not answer (%s), and without it this is denied (on_store_error: closed)", byRule(d.Rule), d.Failure)
	case d.Degraded && decider == nil:
		return fmt.Sprintf("allowed: the store does not answer (%s), and without it this is let through (on_store_error: open)", d.Failure)
	case decider == nil && len(d.Shadow) > 0:
		return "allowed: all rules that apply are in shadow"
	case decider == nil:
		return "allowed: no limit applies"
	case d.Allowed:
		return fmt.Sprintf("allowed: %v of %v tokens left%s", decider.Room(), room(decider), byLimit(decider))
	case decider.Cost > room(decider):
		return fmt.Sprintf("denied%s: it costs %v, and there are never more than %v tokens", byLimit(decider), decider.Cost, room(decider))
	}
	return fmt.Sprintf("denied%s: %v of %v tokens left, and it costs %v", byLimit(decider), decider.Room(), room(decider), decider.Cost)
}

// room is the most that a limit ever has.
func room(s *mete.Status) bucket.Tokens {
	l := &s.Snapshot.Limit
	if l.Queued() {
		return l.Capacity() + l.MaxReserved()
	}
	return l.Capacity()
}

// byLimit names a rule and, where it has several, the limit. Those that a request
// brings have no names.
func byLimit(s *mete.Status) string {
	if s.Limit.Name == s.Rule.Name {
		return byRule(s.Rule.Name)
	}
	return byRule(s.Rule.Name) + ", limit " + s.Limit.Name
}

// byRule names a rule. Limits that requests bring have none.
func byRule(name string) string {
	if name == "" {
		return ""
	}
	return " by rule " + name
}

// lacked says which attribute the rule insists on that denies the request.
func lacked(e *mete.Explanation) string {
	for i := range e.Rules {
		if r := &e.Rules[i]; r.Outcome == policy.OutcomeDenying && !r.Shadow {
			return has(r)
		}
	}
	return "an attribute is missing"
}

// why says in a sentence what became of a rule.
func why(e *mete.Explanation, r *mete.Considered) string {
	switch r.Outcome {
	case policy.OutcomeApplies:
		return applies(e, r)
	case policy.OutcomeUnmatched:
		return fmt.Sprintf("%s, and the rule wants %s", has(r), r.Wants)
	case policy.OutcomeLacking:
		return has(r) + ", which the bucket's key is made of"
	case policy.OutcomeDenying:
		if r.Shadow {
			return has(r) + ", and would be denied for it, but the rule is in shadow" + shadow(e, r)
		}
		return has(r) + ", and is denied for it (on_missing: deny)"
	case policy.OutcomeExempt:
		return "passes this rule: " + because(r.Override)
	case policy.OutcomeBlocked:
		if r.Shadow {
			return "would be blocked: " + because(r.Override) + shadow(e, r)
		}
		return "is blocked: " + because(r.Override)
	case policy.OutcomeTaken:
		return fmt.Sprintf("skipped: rule %s of the same group applied", r.By.Name)
	case policy.OutcomeUnneeded:
		return fmt.Sprintf("skipped: rule %s applied, and this is the fallback_limit", r.By.Name)
	}
	return "off"
}

// has says what the request has of the attribute that it is about.
func has(r *mete.Considered) string {
	if !r.Present {
		return fmt.Sprintf("the request has no %v", r.Attribute)
	}
	return fmt.Sprintf("%v is %q", r.Attribute, clip(r.Value))
}

// applies says how a rule applies.
func applies(e *mete.Explanation, r *mete.Considered) string {
	text := "applies"
	if r.Shadow {
		text += " in shadow"
	}
	switch asked := len(r.Accounts) > 0 && r.Accounts[0].Asked; {
	case !asked && e.Decision.Degraded && !r.Shadow:
		text += ", but the store does not answer: " + unanswered(r.Rule)
	case !asked && !e.Decision.Allowed:
		text += ", and is not asked, as the request is denied anyway"
	case !asked:
		text += ", but the store does not answer"
	case r.Shadow && denies(r):
		text += ", and would deny it"
	case r.Shadow:
		text += ", and would allow it"
	case denies(r):
		text += ", and denies it"
	default:
		text += ", and allows it"
	}
	if e.Decision.Degraded && len(r.Accounts) > 0 && r.Accounts[0].Asked {
		text += "; the store does not answer, and a bucket of this process decides (on_store_error: local)"
	}
	if r.Override != nil {
		text += "; it has another limit: " + because(r.Override)
	}
	switch {
	case r.Shadow:
		text += shadow(e, r)
	case r.Rule.Mode.Partial():
		text += fmt.Sprintf("; this key is among the %v for which it is enforced", r.Rule.Mode)
	}
	return text
}

// denies reports whether any of r's buckets denies its cost.
func denies(r *mete.Considered) bool {
	return slices.ContainsFunc(r.Accounts, func(a mete.Account) bool { return a.Asked && !a.Allowed })
}

// unanswered says what a rule does where the store does not answer, and nothing
// decides in its place.
func unanswered(r *policy.Rule) string {
	switch r.OnStoreError {
	case policy.StoreErrorOpen:
		return "it lets pass then (on_store_error: open)"
	case policy.StoreErrorClosed:
		return "it denies then (on_store_error: closed)"
	}
	return "a bucket of this process would decide (on_store_error: local), but another rule denies"
}

// shadow says why a rule denies nothing, where that is not its mode alone.
func shadow(e *mete.Explanation, r *mete.Considered) string {
	switch {
	case e.Calm != nil:
		return "; all is in shadow: " + because(e.Calm)
	case r.Rule.Mode.Partial():
		return fmt.Sprintf("; it is enforced for %v of the keys, and this is not one", r.Rule.Mode)
	}
	return ""
}

// because says which override it was, who made it, until when and why.
func because(o *policy.Override) string {
	var by strings.Builder
	fmt.Fprintf(&by, "override %s", o.ID)
	if o.Author != "" {
		fmt.Fprintf(&by, " by %s", o.Author)
	}
	fmt.Fprintf(&by, " until %s (%s)", o.ExpiresAt.UTC().Format(time.RFC3339), o.Reason)
	return by.String()
}
