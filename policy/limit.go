// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/metehq/mete/bucket"
)

const (
	// maxLimitNameBytes bounds the names of limits within a rule.
	maxLimitNameBytes = 32

	// maxNumberBytes bounds how a number may be written.
	maxNumberBytes = 100
)

// A Limit is one limit of a rule. It is immutable and safe for concurrent use.
type Limit struct {
	Name   string // the rule's, or rule/limit where a rule has several; fits a structured-field string
	Bucket bucket.Limit
	// Approximation is nil where the rate is exact.
	Approximation *bucket.Approximation

	cost   cost
	prefix string // of its keys; the whole key where the rule has no limit_keys
}

var (
	// algorithms are those that exist, and those that are to come.
	algorithms      = []string{"token_bucket"}
	laterAlgorithms = map[string]string{"fixed_window": "", "sliding_window": "", "sliding_log": "", "leaky_bucket": "",
		"cost_based": "", "token_bucket_llm": ""}

	configSchema = schema{
		what: "algorithm_config",
		fields: []string{"tokens_per_second", "rps", "rate", "burst", "refill", "cost_source", "fixed_cost", "default_cost",
			"min_cost", "max_cost", "max_reserved"},
		later: map[string]string{"anchor": "", "start": "", "window": "", "tokens": "", "capacity": ": say burst"},
	}
	limitSchema = schema{
		what:   "a limit",
		fields: append([]string{"name", "algorithm", "algorithm_config"}, configSchema.fields...),
		later:  configSchema.later,
	}
	nestedLimitSchema = schema{
		what:   "a limit that has an algorithm_config",
		fields: []string{"name", "algorithm", "algorithm_config"},
	}
)

// limits reads the limits of a rule in either form: algorithm_config or limits.
func (c *compiler) limits(r *Rule, o *object) {
	ours := c.algorithm(o.node)
	config, list := o.field("algorithm_config"), o.field("limits")
	switch {
	case config != nil && list != nil:
		c.absent(list, "a rule has either algorithm_config or limits, not both", "move algorithm_config into limits")
	case list != nil:
		c.limitList(r, list)
	case config == nil && !o.meantAny("limits"):
		o.need("algorithm_config", `write {"rps": 10, "burst": 20}, or several of them in limits`)
	case config != nil && ours:
		c.config(r, config, configSchema, r.Name)
	}
}

// algorithm checks what says how a limit works, in any object that may. It is
// false where the rest of the object speaks of something else; a misspelt name
// does not excuse the rest.
func (c *compiler) algorithm(n *node) bool {
	f := n.field("algorithm")
	if f == nil {
		return true
	}
	c.choice(f, "algorithm", algorithms, laterAlgorithms)
	_, later := laterAlgorithms[f.text]
	return !later
}

// limitList reads several limits on one key.
func (c *compiler) limitList(r *Rule, n *node) {
	list, _ := c.list(n, "limits", true, MaxLimits)
	for i, item := range list {
		if !c.algorithm(item) {
			continue
		}
		name := r.Name
		if len(list) > 1 {
			name += "/" + strconv.Itoa(i+1)
		}
		if f := item.field("name"); f != nil {
			given, ok := c.name(f, "limit name", maxLimitNameBytes)
			if !ok {
				continue
			}
			if len(list) > 1 {
				name = r.Name + "/" + given
			}
		}
		config := item.field("algorithm_config")
		if config == nil {
			c.config(r, item, limitSchema, name)
			continue
		}
		if c.object(item, nestedLimitSchema) != nil {
			c.config(r, config, configSchema, name)
		}
	}
}

// config reads one limit, unless another kind of refill makes it speak of
// something else.
func (c *compiler) config(r *Rule, n *node, s schema, name string) {
	if f := n.field("refill"); f != nil {
		if _, ok := c.choice(f, "refill", []string{"continuous"}, map[string]string{"interval": ""}); !ok {
			return
		}
	}
	if o := c.object(n, s); o != nil {
		c.limit(r, o, name)
	}
}

// limit reads one limit and appends it to the rule.
func (c *compiler) limit(r *Rule, o *object, name string) {
	if r.Name != "" {
		if c.limitNames[name] {
			c.absent(o.node, fmt.Sprintf("limit name %q is taken by an earlier limit", name), "names tell the buckets and headers of limits apart")
		}
		c.limitNames[name] = true
	}
	l := Limit{Name: name}
	rate, rateOK := c.rate(o)
	capacity, capacityOK := c.capacity(o, rate, rateOK)
	l.cost = c.cost(o, capacity)
	reserved, reservedOK := c.maxReserved(o)
	if !rateOK || !capacityOK || !reservedOK {
		return
	}
	var err error
	spec := bucket.Spec{Capacity: capacity, Rate: rate, MaxReserved: reserved}
	if l.Bucket, l.Approximation, err = spec.Compile(); err != nil {
		c.absent(o.node, reasonOf(err), "")
		return
	}
	r.Limits = append(r.Limits, l)
}

// rate reads the rate of a limit, which has three names.
func (c *compiler) rate(o *object) (rate bucket.Rate, ok bool) {
	var first *node
	ok = true
	for _, name := range []string{"tokens_per_second", "rps", "rate"} {
		n := o.field(name)
		if n == nil {
			continue
		}
		read := bucket.ParsePerSecond
		switch {
		case name == "rate" && n.kind != isText:
			c.add(n, `rate must be a string such as "7/1m"`, "")
			ok = false
			continue
		case name == "rate":
			read = bucket.ParseRate
		case !c.number(n, name):
			ok = false
			continue
		}
		got, err := read(n.text)
		switch {
		case err != nil && got.Per > 0 && got.Tokens == 0:
			c.add(n, name+" must be above 0", "")
			ok = false
		case err != nil:
			c.add(n, name+": "+reasonOf(err), "")
			ok = false
		case first == nil:
			first, rate = n, got
			if asked, ok := new(big.Rat).SetString(n.text); ok && name != "rate" && asked.Mul(asked, perSecond).Cmp(perNano(got)) != 0 {
				c.warn(n, "the rate has more digits than are kept; the closest one below it is used")
			}
		case !sameRate(rate, got):
			c.add(n, fmt.Sprintf("%s contradicts %s", name, first.path[strings.LastIndexByte(first.path, '/')+1:]), "keep one of them")
			ok = false
		}
	}
	if first == nil && ok {
		ok = false
		if o.count("tokens_per_second", "rps", "rate") == 0 && !o.meantAny("tokens_per_second", "rps", "rate") {
			c.absent(o.node, `field "tokens_per_second" is missing`, `or rps, or rate as in "7/1m"`)
		}
	}
	return rate, ok
}

// maxReserved reads the bound of what reservations may owe; nil where there is
// none.
func (c *compiler) maxReserved(o *object) (*bucket.Tokens, bool) {
	n := o.field("max_reserved")
	if n == nil {
		return nil, true
	}
	if !c.number(n, "max_reserved") {
		return nil, false
	}
	most, err := bucket.ParseTokens(n.text)
	if err != nil {
		c.add(n, "max_reserved: "+reasonOf(err), "0 allows no debt")
		return nil, false
	}
	return &most, true
}

// perSecond turns tokens a second into thousandths a nanosecond.
var perSecond = big.NewRat(1000, 1_000_000_000)

// sameRate compares rates exactly.
func sameRate(a, b bucket.Rate) bool {
	return perNano(a).Cmp(perNano(b)) == 0
}

func perNano(r bucket.Rate) *big.Rat { return big.NewRat(int64(r.Tokens), int64(r.Per)) }

// capacity reads burst: a number of tokens, or how long the rate takes to
// refill it.
func (c *compiler) capacity(o *object, rate bucket.Rate, rateOK bool) (bucket.Tokens, bool) {
	n := o.need("burst", `the most a bucket holds, as in 20 or "300s"`)
	if n == nil {
		return 0, false
	}
	if n.kind != isText || len(n.text) > maxShownBytes || numeric(n.text) {
		return c.tokens(n, "burst")
	}
	d, err := bucket.ParseDuration(n.text)
	if err != nil {
		c.add(n, "burst must be a number of tokens or a duration", `as in 20 or "300s"`)
		return 0, false
	}
	if !rateOK {
		return 0, false
	}
	tokens := new(big.Rat).Mul(perNano(rate), new(big.Rat).SetInt64(int64(d)))
	whole := new(big.Int).Quo(tokens.Num(), tokens.Denom())
	if whole.Sign() <= 0 || whole.Cmp(big.NewInt(int64(bucket.MaxTokens))) > 0 {
		c.add(n, fmt.Sprintf("a burst of %v at %v tokens is not between 0.001 and %v", d, rate, bucket.MaxTokens), "")
		return 0, false
	}
	return bucket.Tokens(whole.Int64()), true
}

// tokens reads an amount above 0.
func (c *compiler) tokens(n *node, what string) (bucket.Tokens, bool) {
	if !c.number(n, what) {
		return 0, false
	}
	t, err := bucket.ParseTokens(n.text)
	switch {
	case err != nil:
		c.add(n, what+": "+reasonOf(err), "")
	case t == 0:
		c.add(n, what+" must be above 0", "")
	default:
		return t, true
	}
	return 0, false
}

// number checks that n looks like a number, which may stand in a string, and
// that it is not negative.
func (c *compiler) number(n *node, what string) bool {
	switch {
	case n.kind != isNumber && n.kind != isText || !numeric(n.text):
		c.add(n, what+" must be a number", "")
	case n.text[0] == '-':
		c.add(n, what+" must be above 0", "")
	default:
		return true
	}
	return false
}

// numeric reports whether s consists of what numbers are made of.
func numeric(s string) bool {
	return s != "" && len(s) <= maxNumberBytes && strings.Trim(s, "0123456789.eE+-") == ""
}
