// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy/internal/parse"
)

const (
	// maxFindings bounds the warnings of one kind that lint gives.
	maxFindings = 100

	// maxLintLooks bounds how many pairs of rules each kind of lint compares. Beyond
	// it finds no more.
	maxLintLooks = 1 << 20

	// maxClientLooks takes the place of maxLintLooks for what lint says of clients and
	// tiers: each of these comparisons costs more.
	maxClientLooks = 1 << 16

	// maxLintWeight bounds the values in the matches of a file, counted by
	// [box.weight], whose rules are compared with those of other groups.
	maxLintWeight = 1 << 15
)

// A linter looks for what is allowed in a policy and probably not meant. It knows
// a policy without mistakes.
type linter struct {
	*compiler
	rules  []*draft            // that deny somebody, in the order of the file
	groups map[string][]*draft // of rules
	scopes map[int][]*draft    // of rules, by policy of the bundle
	looks  int                 // of the kind that is at work
	counts map[string]int      // of findings, by kind
}

// lint looks for what is probably not meant.
func (c *compiler) lint() {
	if c.Found() > 0 {
		return
	}
	l := linter{compiler: c, groups: map[string][]*draft{}, scopes: map[int][]*draft{}, counts: map[string]int{}}
	for _, d := range c.drafts {
		if d.Mode < Shadow {
			l.rules, l.groups[d.group], l.scopes[d.scope] = append(l.rules, d), append(l.groups[d.group], d), append(l.scopes[d.scope], d)
		}
	}
	for _, kind := range []func(){l.modes, l.keys, l.bypasses, l.costs, l.weeks, l.contradictions, l.overlaps, l.catchAlls, l.longOverrides} {
		l.looks = 0
		kind()
	}
	for _, kind := range []func(){l.queues, l.madeUp, l.hiddenTiers, l.clientTiers, l.clientAllows, l.twins} {
		l.looks = maxLintLooks - maxClientLooks
		kind()
	}
}

// look reports whether one more pair of rules may be compared.
func (l *linter) look() bool {
	l.looks++
	return l.looks <= maxLintLooks
}

// warn notes a finding, unless there are enough of its kind.
func (l *linter) warn(n *parse.Node, code, reason, hint string) {
	if l.counts[code]++; l.counts[code] <= maxFindings {
		l.compiler.warn(n, code, reason, hint)
	}
}

// limitNode is where the i'th limit of d stands.
func (d *draft) limitNode(i int) *parse.Node {
	if list := d.at.Field("limits"); list != nil {
		return list.List[i]
	}
	return d.at.Field("algorithm_config")
}

// ofLimit is where the fields of the i'th limit of d stand.
func (d *draft) ofLimit(i int) *parse.Node {
	n := d.limitNode(i)
	if config := n.Field("algorithm_config"); config != nil {
		return config
	}
	return n
}

// modes finds rules that are off.
func (l *linter) modes() {
	for _, d := range l.drafts {
		if d.Mode == Off {
			l.warn(d.at, "rule-off", fmt.Sprintf("rule %q is off, and does nothing", d.Name), "remove it, or say mode: shadow to see what it would do")
		}
	}
}

// costs finds limits that some of the costs that they allow can never pass.
func (l *linter) costs() {
	for _, d := range l.drafts {
		for i := range d.Limits {
			limit, n := &d.Limits[i], d.ofLimit(i)
			k, most := &limit.cost, atOnce(limit)
			if !k.variable {
				continue
			}
			if k.max != bucket.MaxTokens && k.max > most {
				l.warn(n.Field("max_cost"), "impossible-cost", fmt.Sprintf("limit %q admits a cost of %v at most: requests that cost more, up to the max_cost of %v, are never admitted",
					limit.Name, most, k.max), fmt.Sprintf("say max_cost: %v", most))
			}
			if f := n.Field("default_cost"); f != nil && min(max(k.fallback, k.min), k.max) != k.fallback {
				l.warn(f, "clamped-cost", fmt.Sprintf("a default_cost of %v is not between min_cost and max_cost: it is %v", k.fallback, min(max(k.fallback, k.min), k.max)),
					fmt.Sprintf("say default_cost: %v", min(max(k.fallback, k.min), k.max)))
			}
		}
	}
}

// atOnce is what one request can cost.
func atOnce(l *Limit) bucket.Tokens {
	most := l.Bucket.Capacity()
	if l.Bucket.Queued() || most == 0 {
		most += l.Bucket.MaxReserved()
	}
	return most
}

// weeks finds windows of weeks that begin on Thursdays because nobody said when.
func (l *linter) weeks() {
	for _, d := range l.drafts {
		for i := range d.Limits {
			b, n := d.Limits[i].Bucket, d.ofLimit(i)
			if b.Algorithm() != bucket.Stepped || b.Anchor() != bucket.AnchorEpoch || n.Field("start") != nil || n.Field("budget") != nil {
				continue
			}
			if _, p := b.Refill(); p%(7*24*3600*1e6) == 0 {
				l.warn(n, "week-start", fmt.Sprintf("the weeks of limit %q begin on Thursdays at 0:00 UTC, as 1970 did", d.Limits[i].Name), `say start: "4d" for Mondays`)
			}
		}
	}
}

// longOverrides finds exceptions that are as good as for ever.
func (l *linter) longOverrides() {
	const long = 90 * 24 // hours
	var list []*parse.Node
	for _, name := range []string{"overrides", "kill_switches"} {
		if l.top != nil && l.top.Field(name) != nil {
			list = append(list, l.top.Field(name).List...)
		}
	}
	for _, name := range []string{"global_shadow", "break_glass"} {
		if l.top != nil && l.top.Field(name) != nil {
			list = append(list, l.top.Field(name))
		}
	}
	for _, n := range list {
		f := n.Field("expires_at")
		if e := n.Field("enabled"); f == nil || e != nil && e.Text == "false" {
			continue
		}
		if at := l.Instant(f, "expires_at"); at.Sub(l.now).Hours() > long {
			l.warn(f, "long-override", fmt.Sprintf("the override is in force for another %d days", int(at.Sub(l.now).Hours()/24)), "an exception that stays is a rule: write it as one, or let it end sooner")
		}
	}
}
