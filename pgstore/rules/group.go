// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"

	"github.com/metehq/mete/policy"
)

// Rows that name no group are apart from each other: all that match apply. The policy
// language has groups for that, of which one rule applies at most, and a bound for how
// many can. Rows that never match the same request make no difference to each other in
// one group, and only there a table with a row for each endpoint has room.

// maxCompared bounds the work of comparing two clauses. Longer lists are taken to
// overlap.
const maxCompared = 4096

// maxRoom bounds the groups that are tried for a rule: so many limits a request can
// fall under. Rules that found no room are by themselves, which they may be.
const maxRoom = policy.MaxMatches

// A grouping says which rules are tiers of one thing.
type grouping struct {
	members [][]*translation
	named   []string // the group of each that rows name; empty: it was made here
}

// groupsOf puts rows together that name the same group, and those that name none
// where it makes no difference.
func groupsOf(rows []*translation) (g grouping) {
	index := map[string]int{}
	made := map[string]*madeGroups{} // by limit_keys
	for _, t := range rows {
		at, ok := index[t.group]
		if t.group == "" {
			keys := strings.Join(t.keys, "\n")
			if made[keys] == nil {
				made[keys] = &madeGroups{}
			}
			at, ok = made[keys].room(t, len(g.members))
		}
		if !ok {
			at = len(g.members)
			g.members, g.named = append(g.members, nil), append(g.named, t.group)
			index[t.group] = at
		}
		g.members[at] = append(g.members[at], t)
	}
	return g
}

// madeGroups are groups that no row names, of rules with the same limit_keys.
type madeGroups struct {
	at     []int // where they are in the grouping
	crowds []*crowd
}

// room finds one that t can join: none of its members ever matches a request that t
// does. Where there is none, t makes the next one.
func (m *madeGroups) room(t *translation, next int) (at int, ok bool) {
	for i, c := range m.crowds {
		if t.keys != nil && len(t.match) > 0 && c.apartFrom(t) {
			c.add(t)
			return m.at[i], true
		}
	}
	if len(m.crowds) < maxRoom {
		c := &crowd{}
		c.add(t)
		m.at, m.crowds = append(m.at, next), append(m.crowds, c)
	}
	return next, false
}

// apart reports whether it is certain that no request matches both rules.
func apart(a, b *translation) bool {
	for attribute, values := range a.match {
		if others, ok := b.match[attribute]; ok && len(values)*len(others) <= maxCompared && disjoint(values, others) {
			return true
		}
	}
	return false
}

// disjoint reports whether no value is in both lists.
func disjoint(a, b []string) bool {
	for _, x := range a {
		for _, y := range b {
			if overlap(x, y) {
				return false
			}
		}
	}
	return true
}

// overlap reports whether a value can be as x says and as y says.
func overlap(x, y string) bool {
	x, xStar := strings.CutSuffix(x, "*")
	y, yStar := strings.CutSuffix(y, "*")
	return x == y || xStar && strings.HasPrefix(y, x) || yStar && strings.HasPrefix(x, y)
}

// A namer makes names for groups, each once.
type namer map[string]bool

// name returns a name for another group that begins like the one wanted.
func (n namer) name(wanted string) string {
	name := wanted
	for suffix := "'"; n[name]; suffix += "'" {
		name = wanted[:min(len(wanted), policy.MaxNameBytes-len(suffix))] + suffix
	}
	n[name] = true
	return name
}

// isMadeUp reports whether a group may be called like that for want of a name: after
// its first rule.
func isMadeUp(group, rule string) bool {
	return strings.TrimRight(group, "'") == strings.TrimRight(rule, "'")
}

// explicit writes a group into each rule: for the compiler, to which rules that name
// none are tiers if they have the same limit_keys.
func (g *grouping) explicit() {
	names := namer{}
	for _, name := range g.named {
		names[name] = true
	}
	for i, members := range g.members {
		name := g.named[i]
		if name == "" {
			name = names.name(members[0].row.Name)
		}
		for _, t := range members {
			t.rule.put("group", name)
		}
	}
}

// tidy writes a group only where a policy file needs it: into rules that have their
// limit_keys in common with others that are not of their group, or not with all of it.
// What is left out, an import finds again.
func (g *grouping) tidy() {
	names := namer{}
	for _, name := range g.named {
		names[name] = true
	}
	groups := map[string]map[int]bool{} // by limit_keys
	kinds := make([]map[string]bool, len(g.members))
	for i, members := range g.members {
		kinds[i] = map[string]bool{}
		for _, t := range members {
			kind := strings.Join(t.keys, "\n")
			kinds[i][kind] = true
			if groups[kind] == nil {
				groups[kind] = map[int]bool{}
			}
			groups[kind][i] = true
		}
	}
	for i, members := range g.members {
		name, first := g.named[i], members[0]
		plain := len(kinds[i]) == 1 && len(groups[strings.Join(first.keys, "\n")]) == 1
		if plain && (name == "" || name == first.row.Name && len(members) > 1 && !allApart(members)) {
			for _, t := range members {
				delete(t.rule, "group")
			}
			continue
		}
		if name == "" {
			name = names.name(first.row.Name)
		}
		for _, t := range members {
			t.rule.put("group", name)
		}
	}
}
