// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// MaxNameBytes bounds the names of rules, groups and policies. Longer ones
	// are refused.
	MaxNameBytes = 64

	// MaxLimitKeys bounds the attributes of one composite key, MaxLimits the
	// limits of one rule. More are refused.
	MaxLimitKeys = 8
	MaxLimits    = 16

	maxDescriptionBytes = 1024
)

// A Rule is a compiled rule. It is immutable and safe for concurrent use.
type Rule struct {
	Name         string // unique in the file, printable ASCII, at most [MaxNameBytes]
	Description  string
	LimitKeys    []Attribute   // who shares a bucket; none is one bucket for all
	Mode         Mode          // how far it is in force
	OnStoreError OnStoreError  // what to do when the store cannot answer
	Deadline     time.Duration // how long that may take; [DefaultDeadline] unless the file says
	Headers      Dialects      // the fields that show it; zero is as the front door is configured
	Jitter       Jitter        // of a denied client's wait; zero is as the front door is configured
	Limits       []Limit       // at least one

	group     int    // rules of one group are tiers
	grouped   string // what the file calls that, "" where it does not
	scope     int    // the policy of a bundle that it is of
	policy    string // its id, "" for none
	selected  int    // how many of the clauses are those of the policy's selector
	fallback  bool   // applies where no other rule of its policy does
	onMissing onMissing
	clauses   []clause    // all must hold
	keys      []component // of the key, one for each of LimitKeys
	slotBy    *component  // whose value the keys are tagged with; nil for none
	client    *component  // tells requests without the key apart; nil where no share of them is denied
}

// OnStoreError says what becomes of a request when the store cannot answer.
type OnStoreError uint8

const (
	Open   OnStoreError = iota // let it through
	Closed                     // refuse it
	Local                      // decide by a bucket of the process's own, with its share of the limit
)

// Bounds of how long a store may take to answer. A deadline outside of them is
// refused.
const (
	MinDeadline     = time.Millisecond
	MaxDeadline     = 10 * time.Second
	DefaultDeadline = 50 * time.Millisecond // of a rule that names none
)

// onMissing says what becomes of a request that lacks an attribute of the key.
type onMissing uint8

const (
	missingSkip  onMissing = iota // the rule does not apply
	missingDeny                   // the request is denied
	missingEmpty                  // the attribute is taken as empty
)

var ruleSchema = schema{
	what: "a rule", foreign: foreignRule, example: `{"name": "free", "limit_keys": ["ip:address"], "algorithm_config": {"rps": 10, "burst": 20}}`,
	fields: []string{"name", "limit_keys", "match", "group", "algorithm", "algorithm_config", "limits", "mode", "on_missing",
		"on_store_error", "deadline", "slot_by", "headers", "jitter", "description"},
	inside:       "algorithm_config",
	insideFields: anyFields(),
}

var fallbackSchema = schema{
	what: "fallback_limit", foreign: foreignFallback, example: `{"algorithm_config": {"rps": 10, "burst": 20}}`,
	fields: slices.DeleteFunc(slices.Clone(ruleSchema.fields), func(f string) bool { return f == "match" || f == "group" }),
	inside: "algorithm_config", insideFields: ruleSchema.insideFields,
}

// A draft is a rule while its file is being read.
type draft struct {
	*Rule
	at    *node
	group string // of its tiers, "" where that is not known for a mistake
	takes box    // the requests its clauses and its key let in

	slotBy *Attribute // its own, or that of its policy; nil for none
}

// rule reads one rule. One that is not inside a list may be a bare limit, as
// the explanations of algorithms write it: one bucket for all, named default.
func (c *compiler) rule(n *node, listed bool) {
	o := c.object(n, ruleSchema)
	if o == nil {
		return
	}
	d := c.draft(n)
	bare := !listed && o.field("name") == nil && o.field("limit_keys") == nil && len(o.meant) == 0
	keysOK := true
	if bare {
		d.Name = "default"
	} else {
		if f := o.need("name", "every rule has a name of its own"); f != nil {
			c.ruleName(d.Rule, f)
		}
		f := o.need("limit_keys", `say who shares a bucket: ["ip:address"], or [] for all`)
		keysOK = f != nil && c.limitKeys(d.Rule, f)
	}
	c.behavior(d, o)
	if c.match(d, o.field("match")) && keysOK {
		d.group = c.group(d.Rule, o.field("group"))
	}
	c.limits(d.Rule, o)
}

// draft begins a rule, which has what its policy says of all.
func (c *compiler) draft(n *node) *draft {
	d := &draft{Rule: &Rule{Mode: c.policyMode, Deadline: DefaultDeadline, scope: max(c.scope, 0), policy: c.id}, at: n, slotBy: c.slotBy}
	c.drafts = append(c.drafts, d)
	return d
}

// fallback reads a policy's fallback_limit: the rule for what falls under none of
// its rules. Where it names no attributes it is one bucket for all of that.
func (c *compiler) fallback(n *node) {
	o := c.object(n, fallbackSchema)
	if o == nil {
		return
	}
	d := c.draft(n)
	d.Rule.fallback = true
	if f := o.field("name"); f != nil {
		c.ruleName(d.Rule, f)
	} else if d.Name = "fallback"; c.id != "" {
		d.Name = c.id + "/fallback"
	}
	if d.Name != "" && o.field("name") == nil {
		if c.ruleNames[d.Name] || len(d.Name) > MaxNameBytes {
			c.absent(n, fmt.Sprintf("the name %q is taken or too long", d.Name), "say name")
		}
		c.ruleNames[d.Name] = true
	}
	keysOK := true
	if f := o.field("limit_keys"); f != nil {
		keysOK = c.limitKeys(d.Rule, f)
	}
	c.behavior(d, o)
	if c.match(d, nil) && keysOK {
		d.group = fmt.Sprintf("%d:fallback", c.scope)
	}
	c.limits(d.Rule, o)
}

// ruleName reads a rule's name.
func (c *compiler) ruleName(r *Rule, n *node) {
	name, ok := c.name(n, "rule name", MaxNameBytes)
	if !ok {
		return
	}
	if c.ruleNames[name] {
		c.add(n, "rule name is taken by an earlier rule", "names tell the buckets and headers of rules apart")
		return
	}
	c.ruleNames[name] = true
	r.Name = name
}

// behavior reads what a rule does where it applies.
func (c *compiler) behavior(d *draft, o *object) {
	r := d.Rule
	if f := o.field("slot_by"); f != nil {
		d.slotBy = c.readSlotBy(f)
	}
	told := c.readAnswers(o, c.answers)
	r.Headers, r.Jitter = told.headers, told.jitter
	if f := o.field("description"); f != nil {
		r.Description, _ = c.text(f, "description", maxDescriptionBytes)
	}
	if f := o.field("mode"); f != nil {
		mode, _ := c.mode(f)
		r.Mode = max(r.Mode, mode)
		if r.Mode.Partial() && len(r.LimitKeys) == 0 && o.field("limit_keys") != nil {
			c.add(f, "a rule without limit_keys has one key, and no share of that", "say shadow or enforce")
		}
	}
	c.onStoreError(r, o)
	if f := o.field("on_missing"); f != nil {
		switch then, _ := c.choice(f, "on_missing", []string{"skip", "deny", "empty"}, nil); then {
		case "deny":
			r.onMissing = missingDeny
		case "empty":
			r.onMissing = missingEmpty
		}
	}
}

// onStoreError reads what a rule does where the store does not answer, and when
// that is.
func (c *compiler) onStoreError(r *Rule, o *object) {
	if f := o.field("on_store_error"); f != nil {
		switch then, _ := c.choice(f, "on_store_error", []string{"open", "closed", "local"}, nil); then {
		case "closed":
			r.OnStoreError = Closed
		case "local":
			r.OnStoreError = Local
		}
	}
	f := o.field("deadline")
	if f == nil {
		return
	}
	switch d, ok := c.duration(f, "deadline", "20ms"); {
	case !ok:
	case d < MinDeadline || d > MaxDeadline:
		c.add(f, fmt.Sprintf("deadline must be between %v and %v", MinDeadline, MaxDeadline),
			"it is how long the store may take before on_store_error applies")
	default:
		r.Deadline = d
	}
}

// limitKeys reads who shares a bucket.
func (c *compiler) limitKeys(r *Rule, n *node) bool {
	list, ok := c.list(n, "limit_keys", false, MaxLimitKeys)
	for _, item := range list {
		a, aok := c.attribute(item)
		if aok && slices.ContainsFunc(r.LimitKeys, func(b Attribute) bool { return a.text == b.text }) {
			c.add(item, "the attribute is in limit_keys already", "")
			aok = false
		}
		if ok = ok && aok; aok {
			r.LimitKeys = append(r.LimitKeys, a)
		}
	}
	return ok
}

// attribute reads the name of an attribute.
func (c *compiler) attribute(n *node) (Attribute, bool) {
	if n.kind != isText {
		c.add(n, "an attribute must be a string", `as in "header:x-api-key"`)
		return Attribute{}, false
	}
	a, err := parseAttribute(n.text)
	if err != nil {
		c.add(n, err.reason, err.hint)
		return Attribute{}, false
	}
	return a, true
}

// group names the tiers a rule belongs to: those of its own group, or those
// with the same limit_keys in any order.
func (c *compiler) group(r *Rule, n *node) string {
	if n != nil {
		name, ok := c.name(n, "group", MaxNameBytes)
		if !ok {
			return ""
		}
		r.grouped = name
		return fmt.Sprintf("%d:group:%s", c.scope, name)
	}
	var keys []string
	for _, a := range r.LimitKeys {
		keys = append(keys, a.Spelled())
	}
	slices.Sort(keys)
	return fmt.Sprintf("%d:keys:%s", c.scope, strings.Join(keys, " "))
}
