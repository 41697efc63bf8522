// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/policy/internal/inspect"
)

const penaltyExample = `{"first": "1m", "factor": 2, "most": "1h"}`

// readPenalty reads the penalty of a limit.
func (c *compiler) readPenalty(l *Limit, n *parse.Node) {
	if p := c.parsePenalty(n); p != nil {
		c.setPenalty(l, p, n)
	}
}

// readRulePenalty reads the penalty of all limits of a rule that have none of their own.
func (c *compiler) readRulePenalty(d *draft, n *parse.Node) {
	d.penalty, d.penaltyAt = c.parsePenalty(n), n
}

// spreadPenalty gives the penalty of a rule to its limits.
func (c *compiler) spreadPenalty(d *draft) {
	if d.penalty == nil {
		return
	}
	for i := range d.Limits {
		if d.Limits[i].Penalty == nil && !d.Limits[i].HoldsSlot() {
			c.setPenalty(&d.Limits[i], d.penalty, d.penaltyAt)
		}
	}
}

func (c *compiler) setPenalty(l *Limit, p *bucket.Penalty, n *parse.Node) {
	if l.Shards > 1 || l.Leased {
		c.Add(n, "penalty cannot be combined with shards or leased", "a penalty needs one bucket in the store: remove one of them")
		return
	}
	l.Penalty = p
}

// parsePenalty reads a penalty: a duration, or an object with the lengths of a growing one. It returns nil after an error.
func (c *compiler) parsePenalty(n *parse.Node) *bucket.Penalty {
	if n.Kind != parse.KindObject {
		length, ok := c.Duration(n, "penalty", "10m")
		if !ok || !c.checkPenalty(n, "penalty", length) {
			return nil
		}
		return c.newPenalty(n, length, length, bucket.Token)
	}
	o := c.Object(n, penaltyTable)
	if o == nil {
		return nil
	}
	first, firstOK := c.readPenaltyLength(o, "first", "1m")
	factor, factorOK := bucket.Tokens(0), false
	if f := o.Require("factor", "how much longer each penalty is than the one before it, as in 2"); f != nil {
		factor, factorOK = c.Tokens(f, "factor")
		if factorOK && (factor <= bucket.Token || factor > bucket.MaxPenaltyFactor) {
			c.Add(f, fmt.Sprintf("factor must be above 1 and at most %v", bucket.MaxPenaltyFactor), `for a penalty of one length, write penalty: "10m"`)
			factorOK = false
		}
	}
	most, mostOK := c.readPenaltyLength(o, "most", "1h")
	if firstOK && mostOK && first > most {
		c.Add(o.Field("first"), fmt.Sprintf("first of %s is longer than most of %s", inspect.FormatDuration(first), inspect.FormatDuration(most)),
			"first is the length of the first penalty, and most the longest length")
		return nil
	}
	if !firstOK || !factorOK || !mostOK {
		return nil
	}
	return c.newPenalty(n, first, most, factor)
}

func (c *compiler) readPenaltyLength(o *parse.Object, name, example string) (time.Duration, bool) {
	f := o.Require(name, fmt.Sprintf("as in %q", example))
	if f == nil {
		return 0, false
	}
	length, ok := c.Duration(f, name, example)
	return length, ok && c.checkPenalty(f, name, length)
}

func (c *compiler) checkPenalty(n *parse.Node, name string, length time.Duration) bool {
	if length >= bucket.MinPenalty && length <= bucket.MaxPenalty {
		return true
	}
	c.Add(n, fmt.Sprintf("%s must be between %s and %s", name, inspect.FormatDuration(bucket.MinPenalty), inspect.FormatDuration(bucket.MaxPenalty)),
		"it is the time until a denied key is admitted again")
	return false
}

func (c *compiler) newPenalty(n *parse.Node, first, most time.Duration, factor bucket.Tokens) *bucket.Penalty {
	p, err := bucket.NewPenalty(first, most, factor)
	if err != nil {
		c.Add(n, parse.Reason(err), "")
		return nil
	}
	return p
}

func (l *Limit) showPenalty() (string, bool) {
	p := l.Penalty
	if p == nil {
		return "", false
	}
	first, most := inspect.FormatDuration(p.First()), inspect.FormatDuration(p.Most())
	if first == most {
		return "a denied key is admitted again after " + first, true
	}
	return fmt.Sprintf("a denied key is admitted again after %s, then each time after %v times as long, up to %s; it starts over after %s without a new penalty",
		first, p.Factor(), most, most), true
}
