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
	"github.com/metehq/mete/internal/requestpath"
	"github.com/metehq/mete/policy/internal/inspect"
)

func (c *compiler) readOverrides(o *parse.Object) {
	if o == nil {
		return
	}
	c.selector = nil // exceptions apply regardless of the selector of the last policy
	if f := o.Field("overrides"); f != nil {
		list, _ := c.Items(f, "overrides", false, MaxOverrides)
		for _, n := range list {
			c.readOverride(n)
		}
	}
	if f := o.Field("kill_switches"); f != nil {
		list, _ := c.Items(f, "kill_switches", false, MaxOverrides)
		for i, n := range list {
			c.readKillSwitch(n, i)
		}
	}
	c.readState(o.Field("global_shadow"), ActionShadow, "global_shadow")
	c.readState(o.Field("break_glass"), ActionBreakGlass, "break_glass")
}

func (x *exceptions) add(e exception, rules []int, components string) {
	x.all, x.inFile = append(x.all, *e.Override), append(x.inFile, e)
	if len(rules) == 0 {
		x.whole.list = append(x.whole.list, e)
	}
	for _, i := range rules {
		x.addTo(i, e, components)
	}
}

// addTo adds e to the exceptions from the i'th rule.
func (x *exceptions) addTo(i int, e exception, components string) {
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

func (c *compiler) readOverride(n *parse.Node) {
	before := c.Count()
	o, a := c.readLimitOwner(n, inOverride)
	if o == nil {
		return
	}
	e := exception{Override: &Override{}, path: n.Path}
	if f := o.Require("id", "a unique name, for removing it"); f != nil {
		e.ID, _ = c.Name(f, "override id", MaxNameBytes)
		if e.ID != "" && c.overrideIDs[e.ID] {
			c.Add(f, "override id is already used by an earlier override", "")
		}
		c.overrideIDs[e.ID] = true
	}
	if f := o.Require("action", parse.Enumerate(actionWords(), "or")); f != nil {
		if i := c.Choice(f, "action", actionWords(), nil); i >= 0 {
			e.Action = actionKinds[i].Action
		}
	}
	kind := e.Action.Kind()
	e.rank = e.Action.rank()
	c.readProvenance(&e, o, true)
	rules := c.readOverrideRules(&e, o)
	components := ""
	if f := o.Field("key"); f != nil {
		rules, components = c.readOverrideKey(&e, f, rules)
	}
	c.readScope(&e, o, rules)
	if kind.Limit && len(rules) == 1 {
		c.readOverrideLimits(&e, o, a, rules[0])
	} else if e.Action != "" && !kind.Limit && o.Count(append(LimitFields(), "algorithm", "algorithm_config", "limits")...) > 0 {
		c.AddAt(n, fmt.Sprintf("an override with action %s has no limit", e.Action), "remove it, or use action: limit")
	}
	if c.Count() == before {
		c.exceptions.add(e, rules, components)
		if len(rules) == 1 && (kind.Limit || e.Key != "") { // the bucket of all rules that share it
			for _, i := range c.sharing(rules[0]) {
				if i != rules[0] {
					c.exceptions.addTo(i, e.costsOf(c.rules()[i]), components)
				}
			}
		}
	}
}

// readProvenance reads the reason, the author and the expiry of an override.
func (c *compiler) readProvenance(e *exception, o *parse.Object, author bool) {
	if f := o.Require("reason", "explain why the override exists"); f != nil {
		if e.Reason, _ = c.String(f, "reason", maxReasonBytes); f.Kind == parse.KindText && f.Text == "" {
			c.Add(f, "reason must not be empty", "explain why the override exists")
		}
	}
	f := o.Field("author")
	if author {
		f = o.Require("author", "name the person responsible")
	}
	if f != nil {
		if e.Author, _ = c.String(f, "author", maxAuthorBytes); f.Kind == parse.KindText && f.Text == "" {
			c.Add(f, "author must not be empty", "name the person responsible")
		}
	}
	if f := o.Field("created_at"); f != nil {
		e.CreatedAt = c.Instant(f, "created_at")
	}
	if f := o.Require("expires_at", "write a permanent exception as a rule"); f != nil {
		e.ExpiresAt = c.Instant(f, "expires_at")
		e.expires = bucket.At(e.ExpiresAt)
		if !e.ExpiresAt.IsZero() && !e.ExpiresAt.After(c.now) {
			c.warn(f, "expired-override", fmt.Sprintf("the override expired %s ago", formatAge(c.now.Sub(e.ExpiresAt))), "remove it")
		}
	}
}

func (c *compiler) readOverrideRules(e *exception, o *parse.Object) (numbers []int) {
	f, kind := o.Field("rules"), e.Action.Kind()
	if f == nil {
		if kind.Limit && o.Field("key") == nil {
			o.Require("rules", `the rule to change, as in ["free"]`)
		}
		return nil
	}
	if !kind.Rules && e.Action != "" {
		c.Add(f, fmt.Sprintf("an override with action %s applies to all rules", e.Action), "remove rules")
		return nil
	}
	list, _ := c.Items(f, "rules", true, MaxRules)
	for _, n := range list {
		i, ok := c.findRule(n.Text)
		if n.Kind != parse.KindText || !ok {
			c.Add(n, "no rule has that name", c.suggestRule(n.Text))
			continue
		}
		e.Rules, numbers = append(e.Rules, n.Text), append(numbers, i)
	}
	if kind.Limit && len(list) > 1 {
		c.Add(f, "an override with action limit applies to one rule", "write one override per rule")
		return nil
	}
	return numbers
}

func (c *compiler) readOverrideKey(e *exception, f *parse.Node, rules []int) ([]int, string) {
	key, ok := c.String(f, "key", MaxKeyBytes)
	if !ok {
		return nil, ""
	}
	_, name, components := Key(key).split()
	if strings.HasPrefix(name, "#") { // a hash for display
		c.Add(f, "a hashed key does not identify a bucket", "write the key itself, or use match")
		return nil, ""
	}
	i, ok := c.findRuleByKey(name)
	switch {
	case !ok:
		c.Add(f, "no limit has keys that begin like that", "copy it from the explanation of a decision: LIMIT:ATTRIBUTE=VALUE")
	case components == "" && len(c.rules()[i].LimitKeys) > 0:
		c.Add(f, "the key contains no attribute", "copy it from the explanation of a decision: LIMIT:ATTRIBUTE=VALUE")
	case len(rules) > 0 && !slices.Equal(rules, []int{i}):
		c.Add(f, fmt.Sprintf("the key belongs to rule %q, which is not in rules", c.rules()[i].Name), "remove rules")
	default:
		if reason, hint := c.rules()[i].checkKey(components); reason != "" {
			c.Add(f, reason, hint)
			break
		}
		e.Key = key
		return []int{i}, components
	}
	return nil, ""
}

// readScope reads the requests that an override applies to, and checks that they fit its action.
func (c *compiler) readScope(e *exception, o *parse.Object, rules []int) {
	match := o.Field("match")
	if match != nil && e.Key == "" {
		d := &draft{Rule: &Rule{}, at: match, exception: true}
		for _, i := range rules {
			d.of = append(d.of, c.rules()[i])
		}
		if !c.readMatch(d, match) {
			return
		}
		e.alternatives, e.Match = d.alternatives, rawJSON(match)
	}
	switch kind := e.Action.Kind(); {
	case match != nil && o.Field("key") != nil:
		c.Add(match, "an override has either match or key, not both", "")
	case e.Action == "":
	case o.Field("key") != nil && !kind.Key:
		c.Add(o.Field("key"), fmt.Sprintf("an override with action %s cannot have a key", e.Action), "use match, or omit both for all requests")
	case !kind.Some && match != nil:
		c.Add(match, fmt.Sprintf("%s applies to all requests", e.Action), "use action: allow to exempt some of them")
	case !kind.All && !kind.Limit && matchesAll(e.alternatives) && o.Field("key") == nil:
		c.AddAt(o.Node, fmt.Sprintf("an override with action %s needs a match with a clause, or a key", e.Action), `as in {"header:x-api-key": "k1"}`)
	case kind.Limit && len(rules) == 1 && o.Field("key") == nil:
		c.checkWholeBuckets(e, o, c.rules()[rules[0]])
	}
}

// checkWholeBuckets checks that an override changes the limit of whole buckets. A bucket with two limits would
// admit requests that neither limit allows.
func (c *compiler) checkWholeBuckets(e *exception, o *parse.Object, r *Rule) {
	for _, cl := range slices.Concat(e.alternatives...) {
		a := c.matcher.attributes[cl.slot]
		i := slices.IndexFunc(r.LimitKeys, func(k Attribute) bool { return k.text == a.text })
		if i < 0 {
			c.AddAt(o.Node, fmt.Sprintf("rule %q has no %v in limit_keys: requests that the override does not match would share the bucket", r.Name, a),
				"match by limit_keys of the rule only, or add a rule with a match of its own")
			return
		}
		if cl.splitsBucket(r, a) {
			c.AddAt(o.Node, fmt.Sprintf("rule %q uses one bucket for requests with and without a value of %v (on_missing: empty), and the override matches only some of them", r.Name, a),
				"list its values, or use match: {} for all buckets, or key for the bucket of the empty value")
			return
		}
		for _, n := range cl.networks {
			if n.Addr().Is6() && n.Bits() > r.LimitKeys[i].Bits {
				c.AddAt(o.Node, fmt.Sprintf("rule %q uses one bucket per /%d, and the network in match is smaller", r.Name, r.LimitKeys[i].Bits), "use the whole network")
				return
			}
		}
	}
	if len(e.alternatives) == 0 && len(r.LimitKeys) > 0 && o.Field("match") == nil {
		c.AddAt(o.Node, "an override of a rule with limit_keys needs a match or a key", "use match: {} for all buckets of the rule")
	}
}

// splitsBucket reports whether c distinguishes requests without the attribute a from requests with an empty one,
// although they share a bucket of r. An address is never empty.
func (c *clause) splitsBucket(r *Rule, a Attribute) bool {
	return r.onMissing == inspect.MissingEmpty && a.Source != SourceIP && c.holds(&fact{}) != c.holds(&fact{present: true})
}

// readOverrideLimits reads the limits that replace a rule's. They must use the same buckets: another name or other
// shards would start with full ones. Limits that are not named, omitted costs, shards and leases stay as in the
// rule.
func (c *compiler) readOverrideLimits(e *exception, o *parse.Object, a *algorithm, number int) {
	of := c.rules()[number]
	if f := o.Field("algorithm"); f != nil {
		e.Algorithm = f.Text
	}
	e.Config, e.Limits = rawJSON(o.Field("algorithm_config")), rawJSON(o.Field("limits"))
	if own := findOwnLimit(o.Node); own != nil {
		e.Config = rawJSON(own)
	}
	names := c.limitNames
	c.limitNames, c.namedLimits = map[string]bool{}, len(of.Limits) > 1 // it has the names of the rule
	r := &Rule{Name: of.Name, Bucket: of.Bucket, LimitKeys: of.LimitKeys, chargeOn: of.chargeOn}
	c.readLimits(r, o, a, inOverride)
	c.checkCostCaptures(o.Node, r.Limits, of.alternatives)
	c.limitNames, c.namedLimits = names, false
	e.limits = slices.Clone(of.Limits)
	for i := range r.Limits {
		l := &r.Limits[i]
		if len(of.Limits) == 1 && l.Name == of.limitBase() { // without a name it replaces the only limit
			l.Name = of.Limits[0].Name
		}
		j := slices.IndexFunc(of.Limits, func(k Limit) bool { return k.Name == l.Name })
		if j < 0 {
			c.AddAt(o.Node, fmt.Sprintf("rule %q has no limit %q", of.Name, l.Name), hintLimits(of))
			continue
		}
		l.prefix, l.Override = of.Limits[j].prefix, e.Override
		if !l.costGiven {
			l.cost = of.Limits[j].cost
		}
		if !l.onGiven && !l.HoldsSlot() {
			l.chargeOn = of.Limits[j].chargeOn
		}
		c.keepBuckets(l, &of.Limits[j], o)
		e.limits[j] = *l
	}
}

func hintLimits(r *Rule) string {
	if len(r.Limits) == 1 {
		return "the rule has one limit: use algorithm_config"
	}
	var names []string
	for i := range r.Limits {
		names = append(names, strconv.Quote(strings.TrimPrefix(r.Limits[i].Name, r.limitBase()+"/")))
	}
	return "name one of them in limits: " + parse.Enumerate(names, "or")
}

// keepBuckets checks that the limit l fits the buckets of the limit that it replaces.
func (c *compiler) keepBuckets(l, of *Limit, o *parse.Object) {
	if l.Shards != 0 && l.Shards != of.Shards || l.Leased && !of.Leased {
		c.AddAt(o.Node, "an override uses the shards and leases of its rule, because other buckets would start full", "remove shards and leased")
		return
	}
	if l.HoldsSlot() != of.HoldsSlot() {
		what := "an override cannot replace the limit %q by a concurrency limit"
		if of.HoldsSlot() {
			what = "an override can replace the concurrency limit %q only by another one"
		}
		c.AddAt(o.Node, fmt.Sprintf(what, of.Name), "the keys of concurrency limits have slots instead of tokens: override another limit, or change the rule")
		return
	}
	if l.Penalty != nil && (of.Shards > 1 || of.Leased) {
		c.AddAt(o.Node, fmt.Sprintf("penalty cannot be combined with the shards or leases of the limit %q", of.Name), "remove penalty")
		return
	}
	if of.Leased && l.AwaitsResponse() {
		c.AddAt(o.Node, fmt.Sprintf("the limit %q is leased, so the response cannot determine its charge", of.Name), "remove charge_on and the response_header")
		return
	}
	l.Shards, l.Leased = of.Shards, of.Leased
	if l.Penalty == nil {
		l.Penalty = of.Penalty
	}
	b := &l.Bucket
	leasable := !b.Queued() && b.Anchor() < bucket.AnchorFirst && (b.Algorithm() == bucket.AlgorithmContinuous || b.Algorithm() == bucket.AlgorithmStepped)
	switch {
	case of.Shards > 1 && b.Algorithm() != bucket.AlgorithmContinuous:
		c.AddAt(o.Node, fmt.Sprintf("the limit %q is split over shards, which requires a token_bucket that refills continuously", of.Name), "use such a token_bucket")
	case of.Shards > 1:
		if _, err := b.Shard(0, of.Shards); err != nil {
			c.AddAt(o.Node, fmt.Sprintf("the limit %q is split over %d shards: %s", of.Name, of.Shards, parse.Reason(err)), "")
		}
	case of.Leased && !leasable:
		c.AddAt(o.Node, fmt.Sprintf("the limit %q is leased, which requires a token_bucket or a fixed_window", of.Name), "use one of them")
	}
}

// formatAge formats d, in days if it is at least two days.
func formatAge(d time.Duration) string {
	if days := int(d / (24 * time.Hour)); days >= 2 {
		return fmt.Sprintf("%d days", days)
	}
	return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
}

// readKillSwitch reads an entry of kill_switches, a short form of blocks.
func (c *compiler) readKillSwitch(n *parse.Node, i int) {
	o := c.Object(n, switchTable)
	if o == nil {
		return
	}
	before := c.Count()
	e := exception{Override: &Override{ID: fmt.Sprintf("kill_switches/%d", i+1), Action: ActionBlock}, rank: ActionBlock.rank(), path: n.Path}
	c.readProvenance(&e, o, false)
	match := &parse.Node{Kind: parse.KindObject, Path: n.Path, At: n.At}
	if key, value := o.Require("scope_key", "as in header:x-api-key"), o.Require("scope_value", ""); key != nil && value != nil {
		if _, ok := c.readAttribute(key); !ok {
			return
		}
		match.Fields = append(match.Fields, parse.Member{Name: key.Text, Value: value})
	}
	if route := o.Field("route"); route != nil {
		match.Fields = append(match.Fields, parse.Member{Name: "path", Value: route})
	}
	for _, f := range match.Fields {
		switch {
		case strings.HasSuffix(f.Value.Text, "*"), f.Name == "host" && strings.HasPrefix(f.Value.Text, "*"):
			c.Add(f.Value, "a kill switch matches exactly one value", "use an override for a value with a star")
		case strings.EqualFold(f.Name, "path") && requestpath.IsTemplate(f.Value.Text):
			c.Add(f.Value, "a kill switch matches exactly one path, and no template", "use an override for a template; escape a brace of the path as %7B or %7D")
		case f.Value.Kind == parse.KindList || f.Value.Kind == parse.KindObject:
			c.Add(f.Value, "a kill switch matches exactly one value", "write one kill switch per value, or use an override with a list")
		}
	}
	d := &draft{Rule: &Rule{}, at: n, exception: true}
	if c.readMatch(d, match) && c.Count() == before {
		e.alternatives, e.Match = d.alternatives, rawJSON(match)
		c.exceptions.add(e, nil, "")
	}
}

func (c *compiler) readState(n *parse.Node, action Action, name string) {
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
	before := c.Count()
	e := exception{Override: &Override{ID: name, Action: action}, rank: action.rank(), path: n.Path}
	c.readProvenance(&e, o, false)
	if c.Count() == before {
		c.exceptions.add(e, nil, "")
	}
}

func (c *compiler) findRule(name string) (number int, ok bool) {
	if c.byName == nil {
		c.byName = map[string]int{}
		for i, r := range c.rules() {
			c.byName[r.Name] = i
		}
	}
	number, ok = c.byName[name]
	return number, ok
}

func (c *compiler) findRuleByKey(prefix string) (number int, ok bool) {
	if c.byPrefix == nil {
		c.byPrefix = map[string]int{}
		for i, r := range slices.Backward(c.rules()) { // the first rule with a bucket wins
			for j := range r.Limits {
				c.byPrefix[limitPrefix(r.Limits[j].Name)] = i
			}
		}
	}
	number, ok = c.byPrefix[prefix+limitEnd]
	return number, ok
}

// suggestRule returns a hint at a rule with a similar name. After many errors it returns none, because it compares
// every rule.
func (c *compiler) suggestRule(name string) string {
	const enough = 20
	if c.Count() > enough {
		return ""
	}
	var names []string
	for _, r := range c.rules() {
		names = append(names, r.Name)
	}
	return parse.Nearest(name, names)
}

// rawJSON returns n as JSON, or nil.
func rawJSON(n *parse.Node) json.RawMessage {
	if n == nil {
		return nil
	}
	return n.AppendJSON(nil)
}
