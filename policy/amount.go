// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
)

// maxNumberBytes bounds how a number may be written.
const maxNumberBytes = 100

// tokens reads an amount above 0.
func (c *compiler) tokens(n *node, what string) (bucket.Tokens, bool) {
	if !c.number(n, what) {
		return 0, false
	}
	t, ok := c.amount(n, what)
	if ok && t == 0 {
		c.add(n, what+" must be above 0", "")
		return 0, false
	}
	return t, ok
}

// amount reads an amount, which may be 0.
func (c *compiler) amount(n *node, what string) (bucket.Tokens, bool) {
	switch {
	case (n.kind == isNumber || n.kind == isText) && numeric(n.text) && n.text[0] == '-':
		c.add(n, what+" must not be below 0", "")
		return 0, false
	case !c.number(n, what):
		return 0, false
	}
	t, err := bucket.ParseTokens(n.text)
	if err != nil {
		c.add(n, what+": "+reasonOf(err), "")
	}
	return t, err == nil
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

// extent reads a field that must be there: a number of tokens, or how long the
// rate takes to refill them. Only a queue may be 0.
func (c *compiler) extent(o *object, name, hint string, rate bucket.Rate, rateOK bool) (bucket.Tokens, bool) {
	n := o.need(name, hint)
	if n == nil {
		return 0, false
	}
	if n.kind != isText || len(n.text) > maxShownBytes || numeric(n.text) {
		if name == "queue" {
			return c.amount(n, name)
		}
		return c.tokens(n, name)
	}
	d, err := bucket.ParseDuration(n.text)
	if err != nil {
		c.add(n, name+" must be a number of tokens or a duration", `as in 20 or "300s"`)
		return 0, false
	}
	if !rateOK {
		return 0, false
	}
	tokens := new(big.Rat).Mul(perNano(rate), new(big.Rat).SetInt64(int64(d)))
	whole := new(big.Int).Quo(tokens.Num(), tokens.Denom())
	if whole.Sign() <= 0 || whole.Cmp(big.NewInt(int64(bucket.MaxTokens))) > 0 {
		c.add(n, fmt.Sprintf("a %s of %v at %v tokens is not between 0.001 and %v", name, d, rate, bucket.MaxTokens), "")
		return 0, false
	}
	return bucket.Tokens(whole.Int64()), true
}

// duration reads a length of time in whole microseconds.
func (c *compiler) duration(n *node, what, example string) (time.Duration, bool) {
	hint := fmt.Sprintf("as in %q", example)
	if n.kind == isNumber {
		unit := "s"
		if strings.HasSuffix(example, "ms") {
			unit = "ms"
		}
		hint = fmt.Sprintf("say its unit, as in %q", n.text+unit)
	}
	if n.kind != isText || len(n.text) > maxNumberBytes {
		c.add(n, what+" must be a duration", hint)
		return 0, false
	}
	d, err := bucket.ParseDuration(n.text)
	switch {
	case err != nil:
		_, hint, _ = strings.Cut(reasonOf(err), strconv.Quote(n.text)+": ")
		c.add(n, what+" must be a duration", hint)
	case d%time.Microsecond != 0:
		c.add(n, what+" must be whole microseconds", "")
	default:
		return d, true
	}
	return 0, false
}

// maxReserved reads the bound of what reservations may owe; nil where there is
// none.
func (c *compiler) maxReserved(o *object) (*bucket.Tokens, bool) {
	n := o.field("max_reserved")
	if n == nil {
		return nil, true
	}
	most, ok := c.amount(n, "max_reserved")
	return &most, ok
}
