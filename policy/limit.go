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
	Name   string // rule/limit if the limit has a name or the rule has several limits, else the rule's name; fits a structured-field string
	Reason string // of a denial: "token_bucket_exceeded"
	Bucket bucket.Limit

	// Rate is the rate as the policy has it, such as 5 tokens per 10 s. [bucket.Limit.Rate] reduces it to 1 per 2 s.
	Rate bucket.Rate

	// Shards, if above 1, is the number of buckets that share the limit. 0 also means one bucket.
	Shards int

	// Leased lets a remote store take tokens from the bucket in advance, and spend them in this process.
	Leased bool

	// Approximation is nil if the rate is exact.
	Approximation *bucket.Approximation

	// Stages apply to admitted requests when most of the limit is used. Their thresholds rise: see [Limit.Stage].
	Stages []Stage

	// Override is the override that replaced the rule's limit, or nil.
	Override *Override

	cost      cost
	costGiven bool   // by its own fields
	path      string // JSON Pointer to the object with its fields
	starts    bool   // the file sets when the windows begin
	defaults  bool   // the file sets default_cost
	prefix    string // of its keys; the whole key if the rule has no limit_keys
}

// FixedCost reports whether the policy gives every request the same cost under l.
func (l *Limit) FixedCost() bool { return !l.cost.variable }

func (c *compiler) readLimits(r *Rule, o *parse.Object) {
	a := c.readAlgorithm(o.Node, algorithms[0])
	config, list := o.Field("algorithm_config"), o.Field("limits")
	switch {
	case config != nil && list != nil:
		c.AddAt(list, "a rule has either algorithm_config or limits, not both", "move algorithm_config into limits")
	case list != nil:
		c.readLimitList(r, list, a)
	case config == nil && !o.HasMisspelled("limits"):
		o.Require("algorithm_config", `write {"rps": 10, "burst": 20}, or several of them in limits`)
	case config != nil && a != nil:
		if o := c.Object(config, a.config); o != nil {
			c.readLimit(r, a, o, r.Name)
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
		name := r.Name
		if several {
			name += "/" + strconv.Itoa(i+1)
		}
		if f := item.Field("name"); f != nil {
			given, ok := c.Name(f, "limit name", maxLimitNameBytes)
			if !ok {
				continue
			}
			name = r.Name + "/" + given
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
	if r.Name != "" {
		if c.limitNames[name] {
			c.AddAt(o.Node, fmt.Sprintf("limit name %q is already used by an earlier limit", name), "limit names identify buckets and headers")
		}
		c.limitNames[name] = true
	}
	n := a.read(c, o)
	l := Limit{Name: name, prefix: limitPrefix(name), Reason: a.reason, Rate: n.Rate, cost: c.readCost(o, n.most, n.mostIs), costGiven: o.Count(costFields...) > 0, path: o.Path, starts: o.Field("start") != nil, defaults: o.Field("default_cost") != nil}
	if !n.ok {
		return
	}
	var err error
	if l.Bucket, l.Approximation, err = n.Compile(); err != nil {
		c.AddAt(o.Node, parse.Reason(err), "")
		return
	}
	r.Limits = append(r.Limits, l)
	last := &r.Limits[len(r.Limits)-1]
	for _, f := range limitFields {
		if n := o.Field(f.name); n != nil && f.in&a.in != 0 {
			f.limit(c, last, n)
		}
	}
}
