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
	"github.com/metehq/mete/store"
)

func describeDecision(e *mete.Explanation) string {
	d := &e.Decision
	decider := d.Decider()
	switch {
	case d.Override != nil && d.Allowed:
		return "allowed: " + describeOverride(d.Override)
	case d.Override != nil:
		return "denied: " + describeOverride(d.Override)
	case d.RefusingRule() != nil && d.Reason != mete.ReasonMissingAttribute:
		return fmt.Sprintf("denied by rule %s: the request has more tokens than the rule admits for one request (%s)", d.Rule, d.Reason)
	case d.Reason == mete.ReasonMissingAttribute:
		return fmt.Sprintf("denied by rule %s: %s, and the rule has on_missing: deny", d.Rule, missingAttribute(e))
	case d.Reason == mete.ReasonStoreError:
		return fmt.Sprintf("denied%s: the store does not answer (%s), and the rule fails closed (on_store_error: closed)", rulePhrase(d.Rule), d.Failure)
	case d.Degraded && decider == nil:
		return fmt.Sprintf("allowed: the store does not answer (%s), and the rules fail open (on_store_error: open)", d.Failure)
	case decider == nil && len(d.Shadow) > 0:
		return "allowed: all matching rules are in shadow mode"
	case decider == nil:
		return "allowed: no limit applies"
	case d.Reason == store.ReasonFull:
		return fmt.Sprintf("denied%s: the store is full, and the rule denies new keys (on_full: closed)", limitPhrase(decider))
	case d.Allowed && decider.Spill == bucket.SpillOpened:
		return fmt.Sprintf("allowed: the store is full, and the rule lets new keys through (on_full: open)%s", limitPhrase(decider))
	case d.Allowed:
		return fmt.Sprintf("allowed: %v of %v tokens left%s", decider.Room(), maxTokens(decider), limitPhrase(decider))
	case decider.Cost > maxTokens(decider):
		return fmt.Sprintf("denied%s: it costs %v, and the limit never has more than %v tokens", limitPhrase(decider), decider.Cost, maxTokens(decider))
	}
	return fmt.Sprintf("denied%s: %v of %v tokens left, and it costs %v", limitPhrase(decider), decider.Room(), maxTokens(decider), decider.Cost)
}

func maxTokens(s *mete.Status) bucket.Tokens {
	l := &s.Snapshot.Limit
	if l.Queued() {
		return l.Capacity() + l.MaxReserved()
	}
	return l.Capacity()
}

func limitPhrase(s *mete.Status) string {
	if s.Limit.Name == s.Rule.Name {
		return rulePhrase(s.Rule.Name)
	}
	return rulePhrase(s.Rule.Name) + ", limit " + s.Limit.Name
}

func rulePhrase(name string) string {
	if name == "" {
		return ""
	}
	return " by rule " + name
}

func missingAttribute(e *mete.Explanation) string {
	for i := range e.Rules {
		if r := &e.Rules[i]; r.Outcome == policy.OutcomeDenying && !r.Shadow {
			return describeAttribute(r)
		}
	}
	return "an attribute is missing"
}

func describeRule(e *mete.Explanation, r *mete.RuleResult) string {
	switch r.Outcome {
	case policy.OutcomeApplies:
		return describeApplied(e, r)
	case policy.OutcomeUnmatched:
		text := fmt.Sprintf("%s, and the rule wants %s", describeAttribute(r), r.Wants)
		if r.Alternatives > 1 {
			text += fmt.Sprintf(" in the closest of its %d alternatives", r.Alternatives)
		}
		return text
	case policy.OutcomeLacking:
		return describeAttribute(r) + ", which is part of the bucket's key"
	case policy.OutcomeDenying:
		if r.Shadow {
			return describeAttribute(r) + ", and would be denied for it, but the rule is in shadow mode" + shadowSuffix(e, r)
		}
		return describeAttribute(r) + ", and is denied for it (on_missing: deny)"
	case policy.OutcomeExempt:
		return "passes this rule: " + describeOverride(r.Override)
	case policy.OutcomeBlocked:
		if r.Shadow {
			return "would be blocked: " + describeOverride(r.Override) + shadowSuffix(e, r)
		}
		return "is blocked: " + describeOverride(r.Override)
	case policy.OutcomeTaken:
		return fmt.Sprintf("skipped: rule %s of the same group applied", r.By.Name)
	case policy.OutcomeUnneeded:
		return fmt.Sprintf("skipped: rule %s applied, and this is the fallback_limit", r.By.Name)
	case policy.OutcomeInactive:
		return "not active now, only " + r.Wants
	}
	return "off"
}

func describeAttribute(r *mete.RuleResult) string {
	if !r.Present {
		return fmt.Sprintf("the request has no %v", r.Attribute)
	}
	return fmt.Sprintf("%v is %q", r.Attribute, clip(r.Value))
}

func describeApplied(e *mete.Explanation, r *mete.RuleResult) string {
	text := "applies"
	if r.Shadow {
		text += " in shadow"
	}
	switch asked := len(r.Accounts) > 0 && r.Accounts[0].Asked; {
	case !asked && e.Decision.Degraded && !r.Shadow:
		text += ", but the store does not answer: " + describeStoreError(r.Rule)
	case !asked && !e.Decision.Allowed:
		text += ", but is not checked because the request is denied anyway"
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
		text += "; the store does not answer, so a local bucket decides (on_store_error: local)"
	}
	for i := range r.Accounts {
		text += describePenalty(e.At, &r.Accounts[i])
		text += describeSpill(&r.Accounts[i])
	}
	if r.Override != nil {
		text += "; it has another limit: " + describeOverride(r.Override)
	}
	switch {
	case r.Shadow:
		text += shadowSuffix(e, r)
	case r.Rule.Mode.IsPartial():
		text += fmt.Sprintf("; it is enforced for %v of the keys, including this one", r.Rule.Mode)
	}
	return text
}

// describePenalty describes a running penalty, or returns an empty text.
func describePenalty(at bucket.Instant, a *mete.Account) string {
	left, level := a.Penalty()
	if !a.Asked || left == 0 {
		return ""
	}
	until := at.Add(left).Time().Format("2006-01-02 15:04:05 UTC")
	return fmt.Sprintf("; %s is under a penalty until %s, level %d", a.Limit.Name, until, level)
}

// describeSpill describes the effect of a full store on a limit, or returns an empty text.
func describeSpill(a *mete.Account) string {
	switch a.Spill {
	case bucket.SpillShared:
		return "; the store is full, so new keys share one bucket (on_full: share)"
	case bucket.SpillOpened:
		return "; the store is full, so new keys pass (on_full: open)"
	case bucket.SpillClosed:
		return "; the store is full, so new keys are denied (on_full: closed)"
	}
	return ""
}

func denies(r *mete.RuleResult) bool {
	return slices.ContainsFunc(r.Accounts, func(a mete.Account) bool { return a.Asked && !a.Allowed })
}

func describeStoreError(r *policy.Rule) string {
	switch r.OnStoreError {
	case policy.OnStoreErrorOpen:
		return "it fails open (on_store_error: open)"
	case policy.OnStoreErrorClosed:
		return "it fails closed (on_store_error: closed)"
	}
	return "a local bucket would decide (on_store_error: local), but another rule denies"
}

func shadowSuffix(e *mete.Explanation, r *mete.RuleResult) string {
	switch {
	case e.ShadowOverride != nil:
		return "; all rules are in shadow mode: " + describeOverride(e.ShadowOverride)
	case r.Rule.Mode.IsPartial():
		return fmt.Sprintf("; it is enforced for %v of the keys, but not for this one", r.Rule.Mode)
	}
	return ""
}

func describeOverride(o *policy.Override) string {
	var by strings.Builder
	fmt.Fprintf(&by, "override %s", o.ID)
	if o.Author != "" {
		fmt.Fprintf(&by, " by %s", o.Author)
	}
	fmt.Fprintf(&by, " until %s (%s)", o.ExpiresAt.UTC().Format(time.RFC3339), o.Reason)
	return by.String()
}
