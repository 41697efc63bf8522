// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/dialect"
	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/policy/internal/inspect"
)

// The guards of a policy: loop_detection and circuit_breaker. Each becomes a rule of its policy, after the other rules. It is
// charged together with them, so that every store, mode and override treats it like a rule.

// Reasons of denials by guards.
const (
	ReasonLoop    = "loop_detected"
	ReasonBreaker = "circuit_breaker_open"
)

const (
	loopName, breakerName = "loop_detection", "circuit_breaker"

	maxLoopWindow    = 7 * 24 * 60 * 60 // seconds
	maxLoopThreshold = 1_000_000
	maxResetMinutes  = 366 * 24 * 60 // as bucket.MaxPenalty

	// loopDelay is the wait of throttled requests for each identical request.
	loopDelay = 100 * time.Millisecond

	// countedLoops is the capacity of a limit that only counts identical requests.
	countedLoops = 1_000_000_000
)

var loopWords = []string{"reject", "throttle", "warn"}

// IsGuard reports whether r is the loop_detection or the circuit_breaker of its policy.
func (r *Rule) IsGuard() bool { return r.guard }

// readGuards reads the guards of a policy with these rules.
func (c *compiler) readGuards(o *parse.Object, rules []*draft) {
	if n := o.Field(loopName); n != nil {
		c.readLoop(n, rules)
	}
	if n := o.Field(breakerName); n != nil {
		c.readBreaker(n, rules)
	}
}

// openGuard returns the object of a guard, or nil if it is disabled or has errors.
func (c *compiler) openGuard(n *parse.Node, t *parse.Table) *parse.Object {
	o := c.Object(n, t)
	if o == nil {
		return nil
	}
	f := o.Field("enabled")
	if f == nil {
		return nil
	}
	if on, ok := c.Bool(f, "enabled"); !ok || !on {
		return nil
	}
	return o
}

// addGuard adds the rule of a guard with the given keys.
func (c *compiler) addGuard(n *parse.Node, name string, keys []Attribute, l Limit) {
	d := c.addDraft(n)
	d.guard, d.keysOK, d.onMissing, d.Headers = true, true, inspect.MissingEmpty, dialect.None
	d.LimitKeys = keys
	if d.Name = name; c.id != "" {
		d.Name = c.id + "/" + name
	}
	if c.ruleNames[d.Name] || len(d.Name) > MaxNameBytes {
		c.AddAt(n, fmt.Sprintf("the name %q of its rule is already used or too long", d.Name), "rename the other rule, or the policy")
		return
	}
	c.ruleNames[d.Name] = true
	var match *parse.Node
	if l.Reason == ReasonLoop { // callers of the API may have no fingerprint
		match = &parse.Node{Kind: parse.KindObject, Path: n.Path, Fields: []parse.Member{{Name: "ai:" + aiFingerprint, Value: &parse.Node{Kind: parse.KindText, Text: "*", Path: n.Path}}}}
	}
	if c.readMatch(d, match) {
		d.group = fmt.Sprintf("%d:%s", c.scope, name)
	}
	l.Name, l.prefix, l.path = d.Name, limitPrefix(d.Name), n.Path
	d.Limits = []Limit{l}
}

// readLoop reads loop_detection: it counts identical requests of a client in a window that begins with the first of them.
func (c *compiler) readLoop(n *parse.Node, rules []*draft) {
	o := c.openGuard(n, loopTable)
	if o == nil {
		return
	}
	window, threshold := c.requireWhole(o, "window_seconds", 1, maxLoopWindow), c.requireWhole(o, "threshold_identical_requests", 2, maxLoopThreshold)
	action := 0
	if f := o.Field("action"); f != nil {
		action = c.Choice(f, "action", loopWords, nil)
	}
	if f := o.Field("similarity"); f != nil {
		c.Choice(f, "similarity", []string{"exact"}, nil)
	}
	if window == 0 || threshold == 0 || action < 0 {
		return
	}
	l := Limit{Reason: ReasonLoop, cost: cost{fallback: bucket.Token, max: bucket.MaxTokens}}
	count := bucket.Tokens(threshold-1) * bucket.Token
	if loopWords[action] != "reject" {
		count = countedLoops * bucket.Token
		stage := Stage{At: bucket.Tokens(threshold) * bucket.Token, Share: strconv.Itoa(threshold)}
		if loopWords[action] == "throttle" {
			stage.perToken, stage.Delay = loopDelay, min(time.Duration(threshold)*loopDelay, maxStageDelay)
		}
		l.Stages = []Stage{stage}
	}
	spec := bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: count, Rate: bucket.Rate{Tokens: count, Per: time.Duration(window) * time.Second}, Anchor: bucket.AnchorFirst}
	var err error
	if l.Bucket, l.Approximation, err = spec.Compile(); err != nil {
		c.AddAt(n, parse.Reason(err), "")
		return
	}
	l.Rate = spec.Rate
	keys := loopKeys(rules)
	if len(keys) > maxLimitKeys {
		c.AddAt(n, fmt.Sprintf("the rules of the policy tell clients apart by %d attributes, and loop_detection by at most %d", len(keys)-1, maxLimitKeys-1), "move a part of the rules to another policy")
		return
	}
	c.addGuard(n, loopName, keys, l)
}

// loopKeys returns the keys of a loop: the fingerprint of the request, and the attributes that identify clients in the
// rules. Requests of different clients are never identical.
func loopKeys(rules []*draft) []Attribute {
	keys := []Attribute{aiAttribute(aiFingerprint)}
	for _, d := range rules {
		for _, a := range d.LimitKeys {
			if !a.IsCaptured() && !slices.ContainsFunc(keys, func(b Attribute) bool { return a.text == b.text }) {
				keys = append(keys, a)
			}
		}
	}
	if len(keys) == 1 { // no rule tells clients apart
		address, _ := parseAttribute("ip:address")
		keys = append(keys, address)
	}
	return keys
}

// readBreaker reads circuit_breaker: a key that spends too much within a minute is denied for a time.
func (c *compiler) readBreaker(n *parse.Node, rules []*draft) {
	o := c.openGuard(n, breakerTable)
	if o == nil {
		return
	}
	threshold, ok := bucket.Tokens(0), false
	if f := o.Require("spend_rate_threshold_per_minute", "the cost of requests per minute that opens the breaker, as in 1000"); f != nil {
		threshold, ok = c.Tokens(f, "spend_rate_threshold_per_minute")
	}
	if f := o.Field("action"); f != nil {
		ok = c.Choice(f, "action", []string{"reject"}, nil) >= 0 && ok
	}
	minutes := 0
	if f := o.Field("auto_reset_after_minutes"); f != nil {
		var read bool
		minutes, read = c.Whole(f, "auto_reset_after_minutes", 0, maxResetMinutes)
		ok = ok && read
	}
	if f := o.Field("alert"); f != nil {
		_, read := c.Bool(f, "alert")
		ok = ok && read
	}
	if len(rules) == 0 || len(rules[0].Limits) == 0 {
		return // the rule has errors
	}
	if !ok {
		return
	}
	open := time.Duration(minutes) * time.Minute
	if minutes == 0 {
		open = bucket.MaxPenalty // until an administrator resets it
	}
	// The minute that reaches the threshold opens the breaker.
	spec := bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: bucket.Rate{Tokens: max(threshold-1, 1), Per: time.Minute}}
	l := Limit{Reason: ReasonBreaker, Rate: spec.Rate, cost: spending(rules), Penalty: c.newPenalty(n, open, open, bucket.Token)}
	var err error
	if l.Bucket, l.Approximation, err = spec.Compile(); err != nil {
		c.AddAt(n, parse.Reason(err), "")
		return
	}
	var keys []Attribute
	for _, a := range rules[0].LimitKeys {
		if !a.IsCaptured() {
			keys = []Attribute{a}
			break
		}
	}
	c.addGuard(n, breakerName, keys, l)
}

// spending returns the cost of a request for a circuit breaker. It is the cost of the first limit with a variable cost, or of
// the first limit.
func spending(rules []*draft) cost {
	for _, d := range rules {
		for i := range d.Limits {
			k := d.Limits[i].cost
			if k.ai != nil { // other requests spend nothing, and an administrator resets a key without a prompt
				counted := *k.ai
				counted.modelsOnly = true
				k.ai = &counted
			}
			if k.ai != nil || k.variable && !k.source.IsCaptured() {
				return k
			}
		}
	}
	return rules[0].Limits[0].cost
}

// requireWhole returns a required whole number, or 0 after an error.
func (c *compiler) requireWhole(o *parse.Object, name string, least, most int) int {
	f := o.Require(name, fmt.Sprintf("a whole number from %d to %d", least, most))
	if f == nil {
		return 0
	}
	v, ok := c.Whole(f, name, least, most)
	if !ok {
		return 0
	}
	return v
}
