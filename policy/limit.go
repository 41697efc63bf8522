// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strconv"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
)

const maxLimitNameBytes = 32

// A Limit is one limit of a rule. It is immutable and safe for concurrent use.
type Limit struct {
	Name   string // of its bucket or rule; rule/limit if the limit has a name or the rule has several; fits a structured-field string
	Reason string // of a denial: "token_bucket_exceeded"
	Bucket bucket.Limit

	// Rate is the rate as the policy has it, such as 5 tokens per 10 s. [bucket.Limit.Rate] reduces it to 1 per 2 s.
	Rate bucket.Rate

	// Shards, if above 1, is the number of buckets that share the limit. 0 also means one bucket.
	Shards int

	// Leased lets a remote store take tokens from the bucket in advance, and spend them in this process.
	Leased bool

	// Penalty lengthens denials by the limit, or is nil.
	Penalty *bucket.Penalty

	// Approximation is nil if the rate is exact.
	Approximation *bucket.Approximation

	// Stages apply to admitted requests when most of the limit is used. Their thresholds rise: see [Limit.Stage].
	Stages []Stage

	// Override is the override that replaced the rule's limit, or nil.
	Override *Override

	cost      cost
	chargeOn  *chargeOn     // of the limit or its rule; nil charges every outcome
	response  *responseTime // nil unless the response determines the charge
	costGiven bool          // by its own fields
	onGiven   bool          // charge_on is its own
	path      string        // JSON Pointer to the object with its fields
	starts    bool          // the file sets when the windows begin
	defaults  bool          // the file sets default_cost
	prefix    string        // of its keys; the whole key if the rule has no limit_keys
}

// FixedCost reports whether the policy gives every request the same cost under l.
func (l *Limit) FixedCost() bool { return !l.cost.variable && !l.finalCost() }

// finalCost reports whether the response names the cost under l.
func (l *Limit) finalCost() bool {
	return l.cost.field != "" || l.cost.ai != nil || l.chargeOn != nil && l.chargeOn.unit > 0
}

// readLimits reads the limits of a rule or an override in any of their forms. The algorithm is nil if it is unknown.
func (c *compiler) readLimits(r *Rule, o *parse.Object, a *algorithm, in place) {
	if !c.checkForms(o, a, in) {
		return
	}
	switch config, list := o.Field("algorithm_config"), o.Field("limits"); {
	case list != nil:
		c.readLimitList(r, list, a)
	case a == nil:
	case config == nil:
		c.readLimit(r, a, o, r.limitBase())
	default:
		if o := c.Object(config, a.config); o != nil {
			c.readLimit(r, a, o, r.limitBase())
		}
	}
}

// readLimitList reads several limits on one key. A limit without an algorithm uses the rule's.
func (c *compiler) readLimitList(r *Rule, n *parse.Node, fallback *algorithm) {
	list, _ := c.Items(n, "limits", true, maxLimits)
	several := c.namedLimits || len(list) > 1
	for i, item := range list {
		a := c.readAlgorithm(item, fallback)
		if a == nil {
			continue
		}
		name := r.limitBase()
		if several {
			name += "/" + strconv.Itoa(i+1)
		}
		if f := item.Field("name"); f != nil {
			given, ok := c.Name(f, "limit name", maxLimitNameBytes)
			if !ok {
				continue
			}
			name = r.limitBase() + "/" + given
		}
		inside, table := item, a.limit
		if config := item.Field("algorithm_config"); config != nil {
			if c.Object(item, nestedLimitTable) == nil {
				continue
			}
			inside, table = config, a.config
		}
		if o := c.Object(inside, table); o != nil {
			c.readLimit(r, a, o, name)
		}
	}
}

func (c *compiler) readLimit(r *Rule, a *algorithm, o *parse.Object, name string) {
	if r.Name != "" && !c.repeated {
		if c.limitNames[name] {
			c.AddAt(o.Node, fmt.Sprintf("limit name %q is already used by an earlier limit", name), "limit names identify buckets and headers")
		}
		c.limitNames[name] = true
	}
	parts := []limitPart{{"", a.reason, numbers{}}}
	if a.parts == nil {
		parts[0].numbers = a.read(c, o)
	} else {
		parts = a.parts(c, o)
	}
	on, own := r.chargeOn, o.Field("charge_on")
	if a.in == inConcurrency {
		on, own = nil, nil
	}
	if own != nil {
		on = c.readChargeOn(own)
	}
	var k cost
	if a.parts == nil {
		k = c.readCost(o, on, parts[0].numbers.most, parts[0].numbers.mostIs)
	} else {
		k = c.readLLMCost(o, parts)
	}
	for _, p := range parts {
		l := Limit{Name: name + p.name, prefix: limitPrefix(name + p.name), Reason: p.reason, Rate: p.numbers.Rate, cost: k, chargeOn: on, onGiven: own != nil, costGiven: o.Count(costFields...) > 0, path: o.Path, starts: o.Field("start") != nil, defaults: o.Field("default_cost") != nil}
		if !p.numbers.ok {
			continue
		}
		var err error
		if l.Bucket, l.Approximation, err = p.numbers.Compile(); err != nil {
			c.AddAt(o.Node, parse.Reason(err), "")
			continue
		}
		for _, f := range limitFields {
			if n := o.Field(f.name); n != nil && f.in&a.in != 0 {
				f.limit(c, &l, n)
			}
		}
		r.Limits = append(r.Limits, l)
	}
}
