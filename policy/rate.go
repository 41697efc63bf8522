// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
)

// rateNames are the fields with the rate. A limit needs one of them.
var rateNames = []string{"tokens_per_second", "rps", "rate"}

// readRate reads the rate of a limit from the named fields, or from any rate field if names is empty. Other rate
// fields are errors.
func (c *compiler) readRate(o *parse.Object, names ...string) (rate bucket.Rate, ok bool) {
	var first *parse.Node
	ok = true
	for _, name := range rateNames {
		n := o.Field(name)
		if n == nil {
			continue
		}
		if len(names) > 0 && !slices.Contains(names, name) {
			c.Add(n, name+" does not set the length of an interval", `use rate, as in "5/10s"`)
			ok = false
			continue
		}
		got, read := c.readRateField(n, name)
		switch {
		case !read:
			ok = false
		case first == nil:
			first, rate = n, got
		case !equalRates(rate, got):
			c.Add(n, fmt.Sprintf("%s contradicts %s", name, first.Path[strings.LastIndexByte(first.Path, '/')+1:]), "keep one of them")
			ok = false
		}
	}
	if first == nil && ok {
		ok = false
		if !o.HasMisspelled(rateNames...) {
			c.reportNoRate(o, names)
		}
	}
	return rate, ok
}

func (c *compiler) reportNoRate(o *parse.Object, names []string) {
	if len(names) > 0 {
		c.AddAt(o.Node, `field "rate" is missing`, `the tokens per interval and its length, as in "5/10s"`)
		return
	}
	c.AddAt(o.Node, `field "tokens_per_second" is missing`, `or rps, or rate as in "7/1m"`)
}

func (c *compiler) readRateField(n *parse.Node, name string) (bucket.Rate, bool) {
	read := bucket.ParsePerSecond
	switch {
	case name == "rate" && n.Kind != parse.KindText:
		hint := ""
		if n.Kind == parse.KindNumber {
			hint = fmt.Sprintf("write rps: %[1]s, or rate: %[1]s/1s", n.Text)
		}
		c.Add(n, `rate must be a string such as "7/1m"`, hint)
		return bucket.Rate{}, false
	case name == "rate":
		read = bucket.ParseRate
	case !c.Number(n, name):
		return bucket.Rate{}, false
	}
	rate, err := read(n.Text)
	switch {
	case err != nil && rate.Per > 0 && rate.Tokens == 0:
		c.Add(n, name+" must be above 0", "")
	case err != nil && name == "rate" && strings.Contains(n.Text, "/") && !errors.Is(err, bucket.ErrDuration):
		c.Add(n, name+": "+parse.Reason(err), `tokens/duration, as in "10/1s" or "7/1m"`)
	case err != nil:
		c.Add(n, name+": "+parse.Reason(err), "")
	default:
		if exact, ok := new(big.Rat).SetString(n.Text); ok && name != "rate" && exact.Mul(exact, perSecond).Cmp(toPerNano(rate)) != 0 {
			c.warn(n, "rounded-rate", "the rate has too many digits and is rounded down", "")
		}
		return rate, true
	}
	return bucket.Rate{}, false
}

func (c *compiler) readWindow(o *parse.Object) (bucket.Rate, bool) {
	return c.readAmountPer(o, "tokens", "window", func(c *compiler, n *parse.Node, name string) (time.Duration, bool) {
		if _, ok := calendarOf(n); ok {
			c.Add(n, "a sliding window has no calendar", `use algorithm: fixed_window, or a duration such as "1d"`)
			return 0, false
		}
		return c.Duration(n, name, "1m")
	})
}

// readAmountPer reads a rate as an amount and a length of time, with a reader of the length.
func (c *compiler) readAmountPer(o *parse.Object, amount, length string, read func(*compiler, *parse.Node, string) (time.Duration, bool)) (rate bucket.Rate, ok bool) {
	if n := o.Require(amount, fmt.Sprintf("the amount per %s, as in 100", length)); n != nil {
		rate.Tokens, ok = c.Tokens(n, amount)
	}
	n := o.Require(length, `its length, as in "1m" or "1d"`)
	if n == nil {
		return rate, false
	}
	per, perOK := read(c, n, length)
	if perOK && per == 0 {
		c.Add(n, length+" must be above 0", "")
		perOK = false
	}
	rate.Per = per
	return rate, ok && perOK
}

// perSecond converts tokens per second to thousandths per nanosecond.
var perSecond = big.NewRat(1000, 1_000_000_000)

// equalRates compares rates exactly.
func equalRates(a, b bucket.Rate) bool {
	return toPerNano(a).Cmp(toPerNano(b)) == 0
}

func toPerNano(r bucket.Rate) *big.Rat { return big.NewRat(int64(r.Tokens), int64(r.Per)) }
