// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/policy/internal/inspect"
)

// overrides reads what a file says of exceptions from its rules, once these are
// known.
func (c *compiler) overrides(o *parse.Object) {
	if o == nil {
		return
	}
	c.selector = nil // exceptions are about all requests, and not those of the last policy
	if f := o.Field("overrides"); f != nil {
		list, _ := c.Items(f, "overrides", false, MaxOverrides)
		for _, n := range list {
			c.override(n)
		}
	}
	if f := o.Field("kill_switches"); f != nil {
		list, _ := c.Items(f, "kill_switches", false, MaxOverrides)
		for i, n := range list {
			c.killSwitch(n, i)
		}
	}
	c.state(o.Field("global_shadow"), ActionShadow, "global_shadow")
	c.state(o.Field("break_glass"), ActionBreakGlass, "break_glass")
}

// add notes an exception from the numbered rules, or from all of them.
func (x *exceptions) add(e exception, rules []int, components string) {
	x.all, x.read = append(x.all, *e.Override), append(x.read, e)
	if len(rules) == 0 {
		x.whole.list = append(x.whole.list, e)
		return
	}
	for _, i := range rules {
		r := x.rules[i]
		if r == nil {
			r = &ruleException{keys: map[string][]*exception{}}
			x.rules[i] = r
		}
		if e.Key != "" {
			r.keys[components] = append(r.keys[components], &e)
		} else {
			r.list = append(r.list, e)
		}
	}
}

// override reads one entry of overrides.
func (c *compiler) override(n *parse.Node) {
	o := c.Object(n, overrideTable)
	if o == nil {
		return
	}
	before := c.Found()
	e := exception{Override: &Override{}, path: n.Path}
	if f := o.Need("id", "a name by which it can be removed"); f != nil {
		e.ID, _ = c.Name(f, "override id", MaxNameBytes)
		if e.ID != "" && c.overrideIDs[e.ID] {
			c.Add(f, "override id is taken by an earlier override", "")
		}
		c.overrideIDs[e.ID] = true
	}
	if f := o.Need("action", parse.Enumerate(actionWords(), "or")); f != nil {
		if i := c.Choice(f, "action", actionWords(), nil); i >= 0 {
			e.Action = actionKinds[i].Action
		}
	}
	kind := e.Action.Kind()
	e.rank = e.Action.rank()
	c.circumstances(&e, o, true)
	rules := c.overrideRules(&e, o)
	components := ""
	if f := o.Field("key"); f != nil {
		rules, components = c.overrideKey(&e, f, rules)
	}
	c.scopeOf(&e, o, rules)
	if kind.Limit && len(rules) == 1 {
		c.overrideLimits(&e, o, rules[0])
	} else if e.Action != "" && !kind.Limit && o.Count("algorithm", "algorithm_config", "limits") > 0 {
		c.Absent(n, fmt.Sprintf("an override that says %s has no limit", e.Action), "remove it, or say action: limit")
	}
	if c.Found() == before {
		c.exceptions.add(e, rules, components)
	}
}

// circumstances reads who said so, why and until when.
func (c *compiler) circumstances(e *exception, o *parse.Object, author bool) {
	if f := o.Need("reason", "people will ask later"); f != nil {
		if e.Reason, _ = c.String(f, "reason", maxReasonBytes); f.Kind == parse.KindText && f.Text == "" {
			c.Add(f, "reason must not be empty", "people will ask later")
		}
	}
	f := o.Field("author")
	if author {
		f = o.Need("author", "who is to be asked about it")
	}
	if f != nil {
		if e.Author, _ = c.String(f, "author", maxAuthorBytes); f.Kind == parse.KindText && f.Text == "" {
			c.Add(f, "author must not be empty", "who is to be asked about it")
		}
	}
	if f := o.Field("created_at"); f != nil {
		e.CreatedAt = c.Instant(f, "created_at")
	}
	if f := o.Need("expires_at", "an exception without an end is a rule"); f != nil {
		e.ExpiresAt = c.Instant(f, "expires_at")
		e.expires = bucket.At(e.ExpiresAt)
		if !e.ExpiresAt.IsZero() && !e.ExpiresAt.After(c.now) {
			c.warn(f, "expired-override", fmt.Sprintf("the override has expired, %s ago", age(c.now.Sub(e.ExpiresAt))), "remove it")
		}
	}
}

// overrideRules reads which rules an override is about.
func (c *compiler) overrideRules(e *exception, o *parse.Object) (numbers []int) {
	f, kind := o.Field("rules"), e.Action.Kind()
	if f == nil {
		if kind.Limit && o.Field("key") == nil {
			o.Need("rules", `the one whose limit is replaced, as in ["free"]`)
		}
		return nil
	}
	if !kind.Rules && e.Action != "" {
		c.Add(f, fmt.Sprintf("an override that says %s is about all rules", e.Action), "remove rules")
		return nil
	}
	list, _ := c.Items(f, "rules", true, MaxRules)
	for _, n := range list {
		i, ok := c.ruleNamed(n.Text)
		if n.Kind != parse.KindText || !ok {
			c.Add(n, "no rule has that name", c.nearRule(n.Text))
			continue
		}
		e.Rules, numbers = append(e.Rules, n.Text), append(numbers, i)
	}
	if kind.Limit && len(list) > 1 {
		c.Add(f, "another limit is for one rule", "write an override for each")
		return nil
	}
	return numbers
}

// overrideKey reads the bucket that an override is about.
func (c *compiler) overrideKey(e *exception, f *parse.Node, rules []int) ([]int, string) {
	key, ok := c.String(f, "key", MaxKeyBytes)
	if !ok {
		return nil, ""
	}
	_, name, components := Key(key).split()
	if strings.HasPrefix(name, "#") { // hashed for display
		c.Add(f, "a hash of a key does not say whose it is", "write the key itself, or say match")
		return nil, ""
	}
	i, ok := c.ruleOfKeys(name)
	switch {
	case !ok:
		c.Add(f, "no limit's keys begin like that", "write it as an explanation shows it: LIMIT:ATTRIBUTE=VALUE")
	case components == "" && len(c.rules()[i].LimitKeys) > 0:
		c.Add(f, "the key has no attribute in it", "write it as an explanation shows it: LIMIT:ATTRIBUTE=VALUE")
	case len(rules) > 0 && !slices.Equal(rules, []int{i}):
		c.Add(f, fmt.Sprintf("the key is of rule %q, and not of those in rules", c.rules()[i].Name), "remove rules")
	default:
		if reason, hint := c.rules()[i].notAKey(components); reason != "" {
			c.Add(f, reason, hint)
			break
		}
		e.Key = key
		return []int{i}, components
	}
	return nil, ""
}

// scopeOf reads which requests an override is about, and whether that makes sense
// for what it does.
func (c *compiler) scopeOf(e *exception, o *parse.Object, rules []int) {
	match := o.Field("match")
	if match != nil && e.Key == "" {
		d := &draft{Rule: &Rule{}, at: match}
		if !c.match(d, match) {
			return
		}
		e.clauses, e.Match = d.clauses, raw(match)
	}
	switch kind := e.Action.Kind(); {
	case match != nil && o.Field("key") != nil:
		c.Add(match, "an override has either match or key, not both", "")
	case e.Action == "":
	case o.Field("key") != nil && !kind.Key:
		c.Add(o.Field("key"), fmt.Sprintf("an override that says %s is not about a key", e.Action), "say match, or nothing for all requests")
	case !kind.Some && match != nil:
		c.Add(match, fmt.Sprintf("%s is about all requests", e.Action), "say action: allow for some of them")
	case !kind.All && !kind.Limit && len(e.clauses) == 0 && o.Field("key") == nil:
		c.Absent(o.Node, fmt.Sprintf("an override that says %s needs a match with a clause, or a key", e.Action), `as in {"header:x-api-key": "k1"}`)
	case kind.Limit && len(rules) == 1 && o.Field("key") == nil:
		c.ofOneBucket(e, o, c.rules()[rules[0]])
	}
}

// ofOneBucket checks that an override that changes a limit does so for whole
// buckets: one that had two limits would admit what neither does.
func (c *compiler) ofOneBucket(e *exception, o *parse.Object, r *Rule) {
	for _, cl := range e.clauses {
		a := c.matcher.attributes[cl.slot]
		i := slices.IndexFunc(r.LimitKeys, func(k Attribute) bool { return k.text == a.text })
		if i < 0 {
			c.Absent(o.Node, fmt.Sprintf("rule %q has no %v in limit_keys: requests that the override is not about would share the bucket", r.Name, a),
				"match by limit_keys of the rule only, or add a rule with a match of its own")
			return
		}
		if cl.parts(r, a) {
			c.Absent(o.Node, fmt.Sprintf("rule %q has one bucket for requests without %v and with an empty one (on_missing: empty), and the override is about a part of them", r.Name, a),
				"name its values, or say match: {} for all buckets, or key for the bucket of the empty value")
			return
		}
		for _, n := range cl.networks {
			if n.Addr().Is6() && n.Bits() > r.LimitKeys[i].Bits {
				c.Absent(o.Node, fmt.Sprintf("rule %q has one bucket for a /%d, and the network in match is a part of one", r.Name, r.LimitKeys[i].Bits), "name the whole network")
				return
			}
		}
	}
	if len(e.clauses) == 0 && len(r.LimitKeys) > 0 && o.Field("match") == nil {
		c.Absent(o.Node, "an override of a rule that has limit_keys needs a match or a key", "say match: {} for all of its buckets")
	}
}

// parts reports whether c tells requests without the attribute a from those with an
// empty one, where both spend from one bucket of r. An address is never empty.
func (c *clause) parts(r *Rule, a Attribute) bool {
	return r.onMissing == inspect.MissingEmpty && a.Source != SourceIP && c.holds(&fact{}) != c.holds(&fact{present: true})
}

// overrideLimits reads the limits that take the place of a rule's. They are of the
// same buckets: by another name, or over other shards, they would be full ones. What
// is not said is as in the rule: limits that are not named, costs, shards and leases.
func (c *compiler) overrideLimits(e *exception, o *parse.Object, number int) {
	of := c.rules()[number]
	if f := o.Field("algorithm"); f != nil {
		e.Algorithm = f.Text
	}
	e.Config, e.Limits = raw(o.Field("algorithm_config")), raw(o.Field("limits"))
	names := c.limitNames
	c.limitNames, c.several = map[string]bool{}, len(of.Limits) > 1 // it has the names of the rule
	r := &Rule{Name: of.Name, LimitKeys: of.LimitKeys}
	c.limits(r, o)
	c.limitNames, c.several = names, false
	e.limits = slices.Clone(of.Limits)
	for i := range r.Limits {
		l := &r.Limits[i]
		if len(of.Limits) == 1 && l.Name == of.Name { // without a name it is of the only limit
			l.Name = of.Limits[0].Name
		}
		j := slices.IndexFunc(of.Limits, func(k Limit) bool { return k.Name == l.Name })
		if j < 0 {
			c.Absent(o.Node, fmt.Sprintf("rule %q has no limit %q", of.Name, l.Name), otherLimits(of))
			continue
		}
		l.prefix, l.Override = of.Limits[j].prefix, e.Override
		if !l.costGiven {
			l.cost = of.Limits[j].cost
		}
		c.sameBuckets(l, &of.Limits[j], o)
		e.limits[j] = *l
	}
}

// otherLimits is a hint at the names of r's limits.
func otherLimits(r *Rule) string {
	if len(r.Limits) == 1 {
		return "it has one limit: write it in algorithm_config"
	}
	var names []string
	for i := range r.Limits {
		names = append(names, strconv.Quote(strings.TrimPrefix(r.Limits[i].Name, r.Name+"/")))
	}
	return "name one of them in limits: " + parse.Enumerate(names, "or")
}

// sameBuckets sees to it that the limit l is kept in the buckets of that whose place
// it takes.
func (c *compiler) sameBuckets(l, of *Limit, o *parse.Object) {
	if l.Shards != 0 && l.Shards != of.Shards || l.Leased && !of.Leased {
		c.Absent(o.Node, "an override has the shards and leases of its rule: others would be other buckets, and full", "remove shards and leased")
		return
	}
	l.Shards, l.Leased = of.Shards, of.Leased
	b := &l.Bucket
	steady := !b.Queued() && b.Anchor() != bucket.AnchorFirst && (b.Algorithm() == bucket.Continuous || b.Algorithm() == bucket.Stepped)
	switch {
	case of.Shards > 1 && b.Algorithm() != bucket.Continuous:
		c.Absent(o.Node, fmt.Sprintf("the limit %q is split over shards, which only a token_bucket that refills all the time can be", of.Name), "say such a one")
	case of.Shards > 1:
		if _, err := b.Shard(0, of.Shards); err != nil {
			c.Absent(o.Node, fmt.Sprintf("the limit %q is split over %d shards: %s", of.Name, of.Shards, parse.Reason(err)), "")
		}
	case of.Leased && !steady:
		c.Absent(o.Node, fmt.Sprintf("the limit %q is leased, which only a token_bucket or a fixed_window can be", of.Name), "say such a one")
	}
}

// age says how long ago something was: in days, from two of them on.
func age(d time.Duration) string {
	if days := int(d / (24 * time.Hour)); days >= 2 {
		return fmt.Sprintf("%d days", days)
	}
	return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
}

// killSwitch reads an entry of kill_switches, the blocks of another dialect.
func (c *compiler) killSwitch(n *parse.Node, i int) {
	o := c.Object(n, switchTable)
	if o == nil {
		return
	}
	before := c.Found()
	e := exception{Override: &Override{ID: fmt.Sprintf("kill_switches/%d", i+1), Action: ActionBlock}, rank: ActionBlock.rank(), path: n.Path}
	c.circumstances(&e, o, false)
	match := &parse.Node{Kind: parse.KindObject, Path: n.Path, At: n.At}
	if key, value := o.Need("scope_key", "as in header:x-api-key"), o.Need("scope_value", ""); key != nil && value != nil {
		if _, ok := c.attribute(key); !ok {
			return
		}
		match.Fields = append(match.Fields, parse.Member{Name: key.Text, Value: value})
	}
	if route := o.Field("route"); route != nil {
		match.Fields = append(match.Fields, parse.Member{Name: "path", Value: route})
	}
	for _, f := range match.Fields {
		switch {
		case strings.HasSuffix(f.Value.Text, "*"):
			c.Add(f.Value, "a kill switch is about one value", "write an override, whose match can end in a star")
		case f.Value.Kind == parse.KindList || f.Value.Kind == parse.KindObject:
			c.Add(f.Value, "a kill switch is about one value", "write one for each, or an override, whose match can be a list")
		}
	}
	d := &draft{Rule: &Rule{}, at: n}
	if c.match(d, match) && c.Found() == before {
		e.clauses, e.Match = d.clauses, raw(match)
		c.exceptions.add(e, nil, "")
	}
}

// state reads global_shadow or break_glass.
func (c *compiler) state(n *parse.Node, action Action, name string) {
	if n == nil {
		return
	}
	o := c.Object(n, stateTables[name])
	if o == nil {
		return
	}
	if f := o.Field("enabled"); f != nil {
		switch {
		case f.Kind != parse.KindBool:
			c.Add(f, "enabled must be true or false", "")
			return
		case f.Text == "false":
			return
		}
	}
	before := c.Found()
	e := exception{Override: &Override{ID: name, Action: action}, rank: action.rank(), path: n.Path}
	c.circumstances(&e, o, false)
	if c.Found() == before {
		c.exceptions.add(e, nil, "")
	}
}

// ruleNamed returns the number of the rule with that name.
func (c *compiler) ruleNamed(name string) (number int, ok bool) {
	if c.byName == nil {
		c.byName = map[string]int{}
		for i, r := range c.rules() {
			c.byName[r.Name] = i
		}
	}
	number, ok = c.byName[name]
	return number, ok
}

// ruleOfKeys returns the number of the rule with a limit whose keys begin so.
func (c *compiler) ruleOfKeys(prefix string) (number int, ok bool) {
	if c.byPrefix == nil {
		c.byPrefix = map[string]int{}
		for i, r := range c.rules() {
			for j := range r.Limits {
				c.byPrefix[limitPrefix(r.Limits[j].Name)] = i
			}
		}
	}
	number, ok = c.byPrefix[prefix+limitEnd]
	return number, ok
}

// nearRule is a hint at a rule whose name is nearly that. Where there are many
// mistakes already there is none: it looks at every rule.
func (c *compiler) nearRule(name string) string {
	const enough = 20
	if c.Found() > enough {
		return ""
	}
	var names []string
	for _, r := range c.rules() {
		names = append(names, r.Name)
	}
	return parse.Nearest(name, names)
}

// raw is n as JSON, nil where it is nil.
func raw(n *parse.Node) json.RawMessage {
	if n == nil {
		return nil
	}
	return n.AppendJSON(nil)
}
