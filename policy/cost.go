// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
)

var costFields = []string{"cost_source", "fixed_cost", "default_cost", "min_cost", "max_cost"}

type cost struct {
	variable bool // requests name their cost in the attribute at slot
	slot     int
	source   Attribute     // the attribute at slot
	fallback bucket.Tokens // of a request that names no cost; the cost if it is fixed
	min, max bucket.Tokens // bounds of a variable cost
	field    string        // the field of the response that names the final cost, in lower case; may be empty
	ai       *aiCost       // the tokens of a language model are the cost; nil if not
}

// amount returns the cost of a request with this value of the cost attribute, or the default if ok is false.
func (c *cost) amount(value string, ok bool) bucket.Tokens {
	t := c.fallback
	if ok {
		if named, numeric := parseCost(value); numeric {
			t = named
		}
	}
	return min(max(t, c.min), c.max)
}

const maxCostBytes = 64

// parseCost parses the cost in a request: a plain decimal number above 0, such as 5, 0.5 or 1e3. It rounds
// up to a thousandth. Signs, hexadecimal numbers, nan, inf and numbers above [bucket.MaxTokens] are invalid.
func parseCost(s string) (bucket.Tokens, bool) {
	const enough = 1e17 // further digits matter only for rounding up
	s = strings.Trim(s, " \t")
	if s == "" || len(s) > maxCostBytes {
		return 0, false
	}
	v, exponent, rest, ok := int64(0), 3, false, false
	i, point := 0, false
	for ; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '.' && !point && ok:
			point = true
			continue
		case c < '0' || c > '9':
		case v < enough:
			v, ok = v*10+int64(c-'0'), true
			if point {
				exponent--
			}
			continue
		default:
			rest = rest || c != '0'
			if !point {
				exponent++
			}
			continue
		}
		break
	}
	if i < len(s) {
		e, eok := parseExponent(s[i:])
		ok, exponent = ok && eok, exponent+e
	}
	if !ok || s[min(i, len(s))-1] == '.' || v == 0 {
		return 0, false
	}
	return scaleCost(v, exponent, rest)
}

func parseExponent(s string) (e int, ok bool) {
	if len(s) < 2 || s[0]|0x20 != 'e' {
		return 0, false
	}
	digits, negative := s[1:], s[1] == '-'
	if negative || s[1] == '+' {
		digits = s[2:]
	}
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return 0, false
		}
		e = min(e*10+int(c-'0'), 1000)
	}
	if negative {
		e = -e
	}
	return e, digits != ""
}

// scaleCost returns v·10^exponent, rounded up. rest reports that v was truncated.
func scaleCost(v int64, exponent int, rest bool) (bucket.Tokens, bool) {
	for ; exponent > 0; exponent-- {
		if v > int64(bucket.MaxTokens)/10 {
			return 0, false
		}
		v *= 10
	}
	for ; exponent < 0 && v != 0; exponent++ {
		rest = rest || v%10 != 0
		v /= 10
	}
	if rest {
		v++
	}
	return bucket.Tokens(v), v <= int64(bucket.MaxTokens)
}

// readCost reads the cost of requests under a limit with this charge_on. most is the highest cost that the limit admits,
// or 0 if it is unknown; mostIs describes it in messages.
func (c *compiler) readCost(o *parse.Object, on *chargeOn, most bucket.Tokens, mostIs string) cost {
	k := cost{max: bucket.MaxTokens}
	amounts := map[string]bucket.Tokens{}
	for _, name := range []string{"fixed_cost", "default_cost", "min_cost", "max_cost"} {
		n := o.Field(name)
		if n == nil {
			continue
		}
		if t, ok := c.Tokens(n, name); ok {
			amounts[name] = t
			if most > 0 && t > most && name != "max_cost" {
				c.Add(n, fmt.Sprintf("%s is above the %s: such a request can never be admitted", name, mostIs), "")
			}
		}
	}
	n := o.Field("cost_source")
	if n == nil {
		n = o.Field("cost_key") // of cost_based
	}
	if n != nil {
		c.readCostSource(o, n, &k)
	}
	bySize := on != nil && on.unit > 0
	for _, name := range aiFields {
		if f := o.Field(name); f != nil && k.ai == nil {
			c.AddAt(f, name+" requires the cost of a language model", "set cost_source: "+sourceTokens+" or "+sourceMoney)
		}
	}
	if bySize && (k.variable || k.field != "" || o.Field("fixed_cost") != nil) {
		c.AddAt(o.Node, "the cost has two sources, the size of the response (response_bytes) and another one", "remove response_bytes, or cost_source and fixed_cost")
	}
	final := bySize || k.field != ""
	k.fallback = amounts["fixed_cost"]
	if k.variable || final {
		k.fallback = amounts["default_cost"]
	}
	if k.fallback == 0 {
		k.fallback = bucket.Token
	}
	if !k.variable && !final {
		c.checkFixedCost(o, k.fallback, most, mostIs)
		return k
	}
	if k.min = amounts["min_cost"]; amounts["max_cost"] > 0 {
		k.max = amounts["max_cost"]
	}
	if k.min > k.max {
		c.Add(o.Field("min_cost"), fmt.Sprintf("min_cost is above the max_cost of %v", k.max), "")
	}
	if o.Field("default_cost") == nil && most > 0 && k.fallback > most {
		c.AddAt(o.Node, fmt.Sprintf("the default_cost of 1 is above the %s: such a request can never be admitted", mostIs), "set "+missingBurst(o)+"default_cost")
	}
	if o.Field("fixed_cost") != nil {
		c.warn(o.Node, "idle-field", "fixed_cost has no effect unless cost_source is fixed", "use default_cost")
	}
	if k.variable {
		k.source = c.matcher.attributes[k.slot]
		c.warnVariableCost(o, k)
	}
	return k
}

func (c *compiler) checkFixedCost(o *parse.Object, t, most bucket.Tokens, mostIs string) {
	if o.Field("fixed_cost") == nil && most > 0 && t > most {
		c.AddAt(o.Node, fmt.Sprintf("the fixed_cost of 1 is above the %s: a request can never be admitted", mostIs), "set "+missingBurst(o)+"fixed_cost")
	}
	if o.Count("min_cost", "max_cost") > 0 {
		c.warn(o.Node, "idle-field", "min_cost and max_cost have no effect on a fixed cost", "")
	}
}

// missingBurst returns the remedy for a default burst that is too small.
func missingBurst(o *parse.Object) string {
	if o.Field("burst") == nil && o.Count(rateNames...) > 0 && o.Field("queue") == nil {
		return "burst or "
	}
	return ""
}

func (c *compiler) warnVariableCost(o *parse.Object, k cost) {
	a := k.source
	if a.Source != SourceHeader && a.Source != SourceQuery && a.Source != SourceCookie {
		return
	}
	if k.max == bucket.MaxTokens {
		c.warn(o.Node, "unbounded-cost", fmt.Sprintf("a client that sends %v can empty a bucket with one request", a), "set max_cost")
	}
	if k.min == 0 {
		c.warn(o.Node, "unbounded-cost", fmt.Sprintf("a client that sends %v can pay as little as 0.001 per request", a), "set min_cost")
	}
}

// readCostSource reads the attribute, or the field of the response, with the cost of a request. k stays fixed after an
// error.
func (c *compiler) readCostSource(o *parse.Object, n *parse.Node, k *cost) {
	const known = "cost_source must be fixed, header:NAME, query:NAME, attribute:NAME, response_header:NAME, ai:tokens or ai:money"
	if n.Kind != parse.KindText {
		c.Add(n, known, "")
		return
	}
	switch n.Text {
	case "fixed":
		return
	case sourceTokens, sourceMoney:
		c.readAICost(o, n.Text == sourceMoney, StreamContinue, k)
		return
	}
	word, name, _ := strings.Cut(n.Text, ":")
	switch strings.ToLower(word) {
	case "header", "query":
		name = n.Text
	case "attribute":
	case "response_header":
		k.field = c.readFieldName(n, name)
		return
	default:
		c.Add(n, known, "")
		return
	}
	a, err := parseAttribute(name)
	if err != nil {
		c.Add(n, err.reason, err.hint)
		return
	}
	k.slot, k.variable = c.slotFor(a), c.checkFact(n, a)
}

// readFieldName returns the name of a response field in lower case, or "" after an error.
func (c *compiler) readFieldName(n *parse.Node, name string) string {
	a, err := parseAttribute("header:" + name)
	if err != nil {
		c.Add(n, "response_header needs the name of a header field", `as in "response_header:x-cost"`)
		return ""
	}
	return a.Name
}
