// SPDX-License-Identifier: Apache-2.0

package policydiff

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/diff"
)

type explainer struct{ old, new *policy.Matcher }

func (x *explainer) explain(d diff.Difference) difference {
	e := difference{Kind: string(d.Kind), Rule: d.Rule, Was: d.OldName, Override: d.Override, Before: d.Before, After: d.After, Text: x.headline(d)}
	for _, c := range d.Changes {
		e.Changes = append(e.Changes, change{c.Limit, c.Field, c.Old, c.New, meaning(c, x.clientText(d.Rule))})
	}
	if d.Example != nil {
		e.Example = x.newExample(d)
	}
	return e
}

func (x *explainer) headline(d diff.Difference) string {
	switch d.Kind {
	case diff.KindRuleAdded:
		return fmt.Sprintf("rule %s is added: %s", d.Rule, ruleText(x.new, d.Rule))
	case diff.KindRuleRemoved:
		return fmt.Sprintf("rule %s is removed: %s", d.Rule, ruleText(x.old, d.Rule))
	case diff.KindRuleRenamed:
		return fmt.Sprintf("rule %s is renamed from %s: its buckets start full", d.Rule, d.OldName)
	case diff.KindRuleChanged:
		return fmt.Sprintf("rule %s is changed", d.Rule)
	case diff.KindRuleMoved:
		return fmt.Sprintf("rule %s has moved: %s", d.Rule, movedText(d))
	case diff.KindOverrideAdded:
		return fmt.Sprintf("override %s is added: %s", d.Override, overrideText(x.new, d.Override))
	case diff.KindOverrideRemoved:
		return fmt.Sprintf("override %s is removed: %s", d.Override, overrideText(x.old, d.Override))
	}
	return fmt.Sprintf("override %s is changed", d.Override)
}

func ruleText(m *policy.Matcher, name string) string {
	i := slices.IndexFunc(m.Rules(), func(r *policy.Rule) bool { return r.Name == name })
	if i < 0 {
		return ""
	}
	r := m.Rules()[i]
	var limits []string
	for j := range r.Limits {
		limits = append(limits, limitText(&r.Limits[j]))
	}
	s := strings.Join(limits, ", and ") + eachText(r)
	if r.Mode != policy.ModeEnforce {
		s += ", mode " + r.Mode.String()
	}
	return s
}

// eachText describes which requests share a bucket.
func eachText(r *policy.Rule) string {
	if len(r.LimitKeys) == 0 {
		return ", for all requests together"
	}
	names := make([]string, len(r.LimitKeys))
	for i, a := range r.LimitKeys {
		names[i] = a.Spelling()
	}
	return ", for each " + parse.Enumerate(names, "and")
}

// limitText describes a limit, without the time until its bucket is full.
func limitText(l *policy.Limit) string {
	text, _, _ := strings.Cut(prose.Limit(l), "; full in ")
	_, text, _ = strings.Cut(text, ": ")
	return text
}

// movedText describes which rules now take precedence over a rule, and which no longer do.
func movedText(d diff.Difference) string {
	var parts []string
	if len(d.After) > 0 {
		parts = append(parts, fmt.Sprintf("some of its requests now match %s first", parse.Enumerate(d.After, "and")))
	}
	if len(d.Before) > 0 {
		parts = append(parts, fmt.Sprintf("it now matches some requests before %s", parse.Enumerate(d.Before, "and")))
	}
	return strings.Join(parts, "; ")
}

func overrideText(m *policy.Matcher, id string) string {
	i := slices.IndexFunc(m.Overrides(), func(o policy.Override) bool { return o.ID == id })
	if i < 0 {
		return ""
	}
	o := m.Overrides()[i]
	s := string(o.Action)
	if len(o.Rules) > 0 {
		s += ", rules " + parse.Enumerate(o.Rules, "and")
	}
	if o.Key != "" {
		s += ", key " + o.Key
	}
	return s + ", until " + o.ExpiresAt.UTC().Format(time.RFC3339)
}

// meaning explains a change for readers without knowledge of the field. It may be empty.
func meaning(c diff.Change, client string) string {
	switch c.Field {
	case "burst":
		return fmt.Sprintf("%s may send %s at once instead of %s", client, c.New, c.Old)
	case "rate":
		return fmt.Sprintf("%s may continue with %s instead of %s", client, rateText(c.New), rateText(c.Old))
	case "limit_keys":
		return fmt.Sprintf("requests share a bucket by %s instead of %s; buckets start full", orAll(c.New), orAll(c.Old))
	case "mode":
		return modeMeaning(c.New)
	case "name":
		return "its buckets start full"
	case "limits":
		if c.Old == "" {
			return "one more limit"
		}
		return "one limit fewer"
	}
	return ""
}

// clientText describes the clients that share a bucket of a rule in the new policy.
func (x *explainer) clientText(name string) string {
	for _, r := range x.new.Rules() {
		if r.Name == name && len(r.LimitKeys) == 0 {
			return "all clients together"
		}
	}
	return "a client"
}

// rateText formats a rate as "10 per 1s".
func rateText(rate string) string { return strings.Replace(rate, "/", " per ", 1) }

func orAll(keys string) string {
	if keys == "" {
		return "nothing, one bucket for all"
	}
	return keys
}

func modeMeaning(mode string) string {
	switch mode {
	case "enforce":
		return "it denies requests"
	case "shadow":
		return "it counts requests and denies none"
	case "off":
		return "it does nothing"
	}
	return "it denies requests of " + mode + " of its keys"
}
