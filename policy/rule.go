// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/denialbody"
	"github.com/metehq/mete/internal/dialect"
	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/policy/internal/inspect"
	"github.com/metehq/mete/policy/internal/space"
	"github.com/metehq/mete/store"
)

const (
	// MaxNameBytes bounds the names of rules, groups and policies.
	MaxNameBytes = 64

	// maxLimitKeys bounds the attributes of one key, and maxLimits the limits of one rule.
	maxLimitKeys = 8
	maxLimits    = 16

	maxDescriptionBytes = 1024
)

// A Rule is a compiled rule. It is immutable and safe for concurrent use.
type Rule struct {
	Name         string // unique in the file, printable ASCII, at most [MaxNameBytes]
	Description  string
	LimitKeys    []Attribute    // requests with equal values share a bucket; none is one bucket for all
	Mode         Mode           // whether it is enforced
	OnStoreError OnStoreError   // the fallback when the store does not answer
	OnFull       store.OnFull   // the treatment of new keys when the store in memory is full
	Deadline     time.Duration  // for the store's answer; [DefaultDeadline] by default
	Headers      dialect.Set    // the response fields that report it; zero is the server's setting
	Jitter       dialect.Jitter // of a denied client's wait; zero is the server's setting
	Limits       []Limit        // at least one
	Bucket       string         // the name of the bucket that it shares with other rules; "" is a bucket of its own

	// Denial is the response to requests that its limits deny; nil is the problem body with the status 429.
	Denial *denialbody.Answer

	group           int    // rules of one group are tiers
	groupName       string // the name of the group in the file, or ""
	scope           int    // the number of its policy in a bundle
	policy          string // the ID of its policy, or ""
	selectorClauses int    // the number of clauses from the policy's selector
	fallback        bool   // applies if no other rule of its policy does
	guard           bool   // it is a loop_detection or a circuit_breaker
	onMissing       inspect.Missing
	chargeOn        *chargeOn   // of the limits without their own; may be nil
	path            string      // JSON Pointer to it
	alternatives    [][]clause  // all clauses of one of them must hold
	keys            []component // one for each of LimitKeys
	slotBy          *component  // the tag of the keys; may be nil
	slotText        string      // slot_by as the file spells it; "" without a tag
	active          *schedule   // when it applies; nil is always
	client          *component  // distinguishes requests without the key; nil unless the rule denies a share of them
}

// OnStoreError is the fallback for requests when the store does not answer.
type OnStoreError uint8

const (
	OnStoreErrorOpen   OnStoreError = iota // admit the request
	OnStoreErrorClosed                     // deny the request
	OnStoreErrorLocal                      // decide with a bucket in the process that has its share of the limit
)

// Bounds and default of the time that a store may take to answer. Other deadlines are errors.
const (
	MinDeadline     = time.Millisecond
	MaxDeadline     = 10 * time.Second
	DefaultDeadline = 50 * time.Millisecond // of a rule without a deadline
)

var (
	missingWords    = []string{"skip", "deny", "empty"}
	storeErrorWords = []string{"open", "closed", "local"}
	fullWords       = []string{store.OnFullShare: "share", store.OnFullOpen: "open", store.OnFullClosed: "closed"}
)

// A draft is a rule while its file is being parsed. A policy and a bundle also have drafts, with the fields that
// their rules inherit.
type draft struct {
	*Rule
	at     *parse.Node
	group  string // of its tiers; "" if unknown because of an error
	bare   bool   // a limit without name and limit_keys
	keysOK bool   // limit_keys has no errors

	slotBy     *Attribute // its own or inherited; may be nil
	sharesWith *draft     // the earlier rule with its bucket; may be nil

	penalty   *bucket.Penalty // of its limits; may be nil
	penaltyAt *parse.Node

	exception bool    // the match of an override
	of        []*Rule // the rules of the override

	takes []space.Box // the requests that each alternative and the key accept
}

// An alternative is one list of clauses of a match while its file is being parsed.
type alternative struct {
	at      *parse.Node
	clauses []clause
	takes   space.Box // the requests that the clauses and the rule's key accept
}

// keyNode returns the node of the i'th of limit_keys, or of the rule if it has none.
func (d *draft) keyNode(i int) *parse.Node {
	if n := d.at.Field("limit_keys"); n != nil && i < len(n.List) {
		return n.List[i]
	}
	return d.at
}

func newDraft() draft { return draft{Rule: &Rule{Deadline: DefaultDeadline}} }

func (d *draft) inherit() draft {
	r := *d.Rule
	return draft{Rule: &r, slotBy: d.slotBy}
}

// addDraft starts a rule that inherits fields of its policy.
func (c *compiler) addDraft(n *parse.Node) *draft {
	d := c.shared.inherit()
	d.at, d.path, d.scope, d.policy = n, n.Path, max(c.scope, 0), c.id
	c.drafts = append(c.drafts, &d)
	return &d
}

// readRule reads one rule. A rule outside of a list may be only a limit. It is then named default and has
// one bucket for all requests.
func (c *compiler) readRule(n *parse.Node, listed bool) {
	o, a := c.readLimitOwner(n, inRule)
	if o == nil {
		return
	}
	d := c.addDraft(n)
	if d.bare = !listed && o.Count("name", "limit_keys") == 0 && !o.HasMisspelled(); d.bare {
		d.Name, d.keysOK = "default", true
	}
	d.sharesWith = c.findBucket(o)
	c.readRuleFields(d, o, inRule)
	if d.sharesWith != nil {
		c.inheritBucket(d, o)
	}
	if c.readMatch(d, o.Field("match")) && d.keysOK {
		d.group = c.readGroup(d.Rule, o.Field("group"))
	}
	if d.sharesWith != nil {
		c.checkBucket(d, o)
		c.readSharedLimits(d, o, a)
	} else {
		c.readLimits(d.Rule, o, a, inRule)
		if d.Bucket != "" {
			c.buckets[bucketName{d.scope, d.Bucket}] = d
		}
	}
	c.checkCostCaptures(d.at, d.Limits, d.alternatives)
	c.checkSlotFields(d, o)
	c.spreadPenalty(d)
	if d.sharesWith != nil {
		c.sharePenalty(d)
	}
}

// readFallback reads a policy's fallback_limit: the rule for requests that match no other rule. Without limit_keys
// it is one bucket for all of them.
func (c *compiler) readFallback(n *parse.Node) {
	o, a := c.readLimitOwner(n, inFallback)
	if o == nil {
		return
	}
	d := c.addDraft(n)
	d.Rule.fallback, d.keysOK = true, o.Field("limit_keys") == nil
	if o.Field("name") == nil {
		if d.Name = "fallback"; c.id != "" {
			d.Name = c.id + "/fallback"
		}
		if c.ruleNames[d.Name] || len(d.Name) > MaxNameBytes {
			c.AddAt(n, fmt.Sprintf("the name %q is already used or too long", d.Name), "set name")
		}
		c.ruleNames[d.Name] = true
	}
	c.readRuleFields(d, o, inFallback)
	if c.readMatch(d, nil) && d.keysOK {
		d.group = fmt.Sprintf("%d:fallback", c.scope)
	}
	c.readLimits(d.Rule, o, a, inFallback)
	c.checkCostCaptures(d.at, d.Limits, nil)
	c.checkSlotFields(d, o)
	c.spreadPenalty(d)
}

func (c *compiler) readRuleName(d *draft, n *parse.Node) {
	name, ok := c.Name(n, "rule name", MaxNameBytes)
	switch {
	case !ok:
	case c.ruleNames[name]:
		c.Add(n, "rule name is already used by an earlier rule", "rule names identify buckets and headers")
	default:
		c.ruleNames[name] = true
		d.Name = name
	}
}

// readText returns a reader for a text field of at most most bytes.
func readText(name string, most int, to func(*draft) *string) func(*compiler, *draft, *parse.Node) {
	return func(c *compiler, d *draft, n *parse.Node) { *to(d), _ = c.String(n, name, most) }
}

// readRuleMode reads a mode. The policy's mode bounds the mode of the rule.
func (c *compiler) readRuleMode(d *draft, n *parse.Node) {
	mode, _ := c.parseMode(n)
	d.Mode = max(d.Mode, mode)
	if d.Mode.IsPartial() && d.at != nil && len(d.LimitKeys) == 0 && d.at.Field("limit_keys") != nil {
		c.Add(n, "a rule without limit_keys has a single key and cannot be enforced in part", "use shadow or enforce")
	}
}

func (c *compiler) readOnMissing(d *draft, n *parse.Node) {
	if i := c.Choice(n, "on_missing", missingWords, nil); i >= 0 {
		d.onMissing = inspect.Missing(i)
	}
}

func (c *compiler) readOnStoreError(d *draft, n *parse.Node) {
	if i := c.Choice(n, "on_store_error", storeErrorWords, nil); i >= 0 {
		d.OnStoreError = OnStoreError(i)
	}
}

func (c *compiler) readOnFull(d *draft, n *parse.Node) {
	if i := c.Choice(n, "on_full", fullWords, nil); i >= 0 {
		d.OnFull = store.OnFull(i)
	}
}

func (c *compiler) readDeadline(d *draft, n *parse.Node) {
	switch t, ok := c.Duration(n, "deadline", "20ms"); {
	case !ok:
	case t < MinDeadline || t > MaxDeadline:
		c.Add(n, fmt.Sprintf("deadline must be between %v and %v", MinDeadline, MaxDeadline),
			"it is the time that the store may take before on_store_error applies")
	default:
		d.Deadline = t
	}
}

func (c *compiler) readLimitKeys(d *draft, n *parse.Node) {
	list, ok := c.Items(n, "limit_keys", false, maxLimitKeys)
	for _, item := range list {
		a, aok := c.readAttribute(item)
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

func (c *compiler) readAttribute(n *parse.Node) (Attribute, bool) {
	if n.Kind != parse.KindText {
		c.Add(n, "an attribute must be a string", `as in "header:x-api-key"`)
		return Attribute{}, false
	}
	a, err := parseAttribute(n.Text)
	if err != nil {
		c.Add(n, err.reason, err.hint)
		return Attribute{}, false
	}
	return a, c.checkFact(n, a)
}

// readGroup returns the name of the tiers that a rule belongs to: its group, or the rules with the same limit_keys
// in any order.
func (c *compiler) readGroup(r *Rule, n *parse.Node) string {
	if n != nil {
		name, ok := c.Name(n, "group", MaxNameBytes)
		if !ok {
			return ""
		}
		r.groupName = name
		return fmt.Sprintf("%d:group:%s", c.scope, name)
	}
	var keys []string
	for _, a := range r.LimitKeys {
		keys = append(keys, a.Spelling())
	}
	slices.Sort(keys)
	return fmt.Sprintf("%d:keys:%s", c.scope, strings.Join(keys, " "))
}
