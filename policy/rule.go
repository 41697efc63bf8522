// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/internal/dialect"
	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/policy/internal/inspect"
	"github.com/metehq/mete/policy/internal/space"
)

const (
	// MaxNameBytes bounds the names of rules, groups and policies. Longer ones
	// are refused.
	MaxNameBytes = 64

	// maxLimitKeys bounds the attributes of one composite key, maxLimits the
	// limits of one rule. More are refused.
	maxLimitKeys = 8
	maxLimits    = 16

	maxDescriptionBytes = 1024
)

// A Rule is a compiled rule. It is immutable and safe for concurrent use.
type Rule struct {
	Name         string // unique in the file, printable ASCII, at most [MaxNameBytes]
	Description  string
	LimitKeys    []Attribute    // who shares a bucket; none is one bucket for all
	Mode         Mode           // how far it is in force
	OnStoreError OnStoreError   // what to do when the store cannot answer
	Deadline     time.Duration  // how long that may take; [DefaultDeadline] unless the file says
	Headers      dialect.Set    // the fields that show it; zero is as the front door is configured
	Jitter       dialect.Jitter // of a denied client's wait; zero is as the front door is configured
	Limits       []Limit        // at least one

	group     int    // rules of one group are tiers
	grouped   string // what the file calls that, "" where it does not
	scope     int    // the policy of a bundle that it is of
	policy    string // its id, "" for none
	selected  int    // how many of the clauses are those of the policy's selector
	fallback  bool   // applies where no other rule of its policy does
	onMissing inspect.Missing
	path      string      // JSON Pointer to it
	clauses   []clause    // all must hold
	keys      []component // of the key, one for each of LimitKeys
	slotBy    *component  // whose value the keys are tagged with; nil for none
	slotted   string      // slot_by in the spelling of the file, "" for no tag
	client    *component  // tells requests without the key apart; nil where no share of them is denied
}

// OnStoreError says what becomes of a request when the store cannot answer.
type OnStoreError uint8

const (
	StoreErrorOpen   OnStoreError = iota // let it through
	StoreErrorClosed                     // refuse it
	StoreErrorLocal                      // decide by a bucket of the process's own, with its share of the limit
)

// Bounds of how long a store may take to answer. A deadline outside of them is
// refused.
const (
	MinDeadline     = time.Millisecond
	MaxDeadline     = 10 * time.Second
	DefaultDeadline = 50 * time.Millisecond // of a rule that names none
)

// The words of policy files, in the order of the constants.
var (
	missingWords    = []string{"skip", "deny", "empty"}
	storeErrorWords = []string{"open", "closed", "local"}
)

// A draft is a rule while its file is being read. A policy and a bundle have drafts, too, of
// the fields that their rules inherit.
type draft struct {
	*Rule
	at     *parse.Node
	group  string    // of its tiers, "" where that is not known for a mistake
	takes  space.Box // the requests its clauses and its key let in
	bare   bool      // it is a limit without name and limit_keys
	keysOK bool      // limit_keys have no mistake

	slotBy *Attribute // its own, or that of its policy; nil for none
}

// newDraft returns the draft of fields that nothing was inherited for.
func newDraft() draft { return draft{Rule: &Rule{Deadline: DefaultDeadline}} }

// heir returns a draft that inherits the fields of d.
func (d *draft) heir() draft {
	r := *d.Rule
	return draft{Rule: &r, slotBy: d.slotBy}
}

// draft begins a rule, which inherits fields of its policy.
func (c *compiler) draft(n *parse.Node) *draft {
	d := c.shared.heir()
	d.at, d.path, d.scope, d.policy = n, n.Path, max(c.scope, 0), c.id
	c.drafts = append(c.drafts, &d)
	return &d
}

// rule reads one rule. A rule outside of a list may be a bare limit, as the explanations of
// algorithms write it: one bucket for all, named default.
func (c *compiler) rule(n *parse.Node, listed bool) {
	o := c.Object(n, ruleTable)
	if o == nil {
		return
	}
	d := c.draft(n)
	if d.bare = !listed && o.Count("name", "limit_keys") == 0 && !o.Meant(); d.bare {
		d.Name, d.keysOK = "default", true
	}
	c.readRule(d, o, inRule)
	if c.match(d, o.Field("match")) && d.keysOK {
		d.group = c.group(d.Rule, o.Field("group"))
	}
	c.limits(d.Rule, o)
}

// fallback reads a policy's fallback_limit: the rule for requests that fall under none of
// its rules. Without limit_keys it is one bucket for all of them.
func (c *compiler) fallback(n *parse.Node) {
	o := c.Object(n, fallbackTable)
	if o == nil {
		return
	}
	d := c.draft(n)
	d.Rule.fallback, d.keysOK = true, o.Field("limit_keys") == nil
	if o.Field("name") == nil {
		if d.Name = "fallback"; c.id != "" {
			d.Name = c.id + "/fallback"
		}
		if c.ruleNames[d.Name] || len(d.Name) > MaxNameBytes {
			c.Absent(n, fmt.Sprintf("the name %q is taken or too long", d.Name), "say name")
		}
		c.ruleNames[d.Name] = true
	}
	c.readRule(d, o, inFallback)
	if c.match(d, nil) && d.keysOK {
		d.group = fmt.Sprintf("%d:fallback", c.scope)
	}
	c.limits(d.Rule, o)
}

func (c *compiler) ruleName(d *draft, n *parse.Node) {
	name, ok := c.Name(n, "rule name", MaxNameBytes)
	switch {
	case !ok:
	case c.ruleNames[name]:
		c.Add(n, "rule name is taken by an earlier rule", "names tell the buckets and headers of rules apart")
	default:
		c.ruleNames[name] = true
		d.Name = name
	}
}

// readText makes the reader of a field that is text of at most most bytes.
func readText(name string, most int, to func(*draft) *string) func(*compiler, *draft, *parse.Node) {
	return func(c *compiler, d *draft, n *parse.Node) { *to(d), _ = c.String(n, name, most) }
}

// ruleMode reads a mode. A rule is in force no further than its policy.
func (c *compiler) ruleMode(d *draft, n *parse.Node) {
	mode, _ := c.mode(n)
	d.Mode = max(d.Mode, mode)
	if d.Mode.Partial() && d.at != nil && len(d.LimitKeys) == 0 && d.at.Field("limit_keys") != nil {
		c.Add(n, "a rule without limit_keys has one key, and no share of that", "say shadow or enforce")
	}
}

func (c *compiler) onMissing(d *draft, n *parse.Node) {
	if i := c.Choice(n, "on_missing", missingWords, nil); i >= 0 {
		d.onMissing = inspect.Missing(i)
	}
}

func (c *compiler) onStoreError(d *draft, n *parse.Node) {
	if i := c.Choice(n, "on_store_error", storeErrorWords, nil); i >= 0 {
		d.OnStoreError = OnStoreError(i)
	}
}

func (c *compiler) deadline(d *draft, n *parse.Node) {
	switch t, ok := c.Duration(n, "deadline", "20ms"); {
	case !ok:
	case t < MinDeadline || t > MaxDeadline:
		c.Add(n, fmt.Sprintf("deadline must be between %v and %v", MinDeadline, MaxDeadline),
			"it is how long the store may take before on_store_error applies")
	default:
		d.Deadline = t
	}
}

// limitKeys reads the attributes whose values share a bucket.
func (c *compiler) limitKeys(d *draft, n *parse.Node) {
	list, ok := c.Items(n, "limit_keys", false, maxLimitKeys)
	for _, item := range list {
		a, aok := c.attribute(item)
		if aok && slices.ContainsFunc(d.LimitKeys, func(b Attribute) bool { return a.text == b.text }) {
			c.Add(item, "the attribute is in limit_keys already", "")
			aok = false
		}
		if ok = ok && aok; aok {
			d.LimitKeys = append(d.LimitKeys, a)
		}
	}
	d.keysOK = ok
}

// attribute reads the name of an attribute.
func (c *compiler) attribute(n *parse.Node) (Attribute, bool) {
	if n.Kind != parse.KindText {
		c.Add(n, "an attribute must be a string", `as in "header:x-api-key"`)
		return Attribute{}, false
	}
	a, err := parseAttribute(n.Text)
	if err != nil {
		c.Add(n, err.reason, err.hint)
		return Attribute{}, false
	}
	return a, true
}

// group returns the tiers that a rule belongs to: the rules of its group, or those with the
// same limit_keys in any order.
func (c *compiler) group(r *Rule, n *parse.Node) string {
	if n != nil {
		name, ok := c.Name(n, "group", MaxNameBytes)
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
