// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/policy/internal/inspect"
)

// The bounds of a lease. The holder of a slot renews it three times per lease, so a shorter lease would cost more store
// calls than requests. A longer one would keep the slots of a crashed process for days.
const (
	minLease = time.Second
	maxLease = 24 * time.Hour
)

// HoldsSlot reports whether a request holds a slot of l until it ends. Its cost is then always one slot.
func (l *Limit) HoldsSlot() bool { return l.Bucket.Algorithm() == bucket.AlgorithmConcurrency }

// HoldsSlots reports whether a request may hold a slot of one of the limits of r.
func (r *Rule) HoldsSlots() bool {
	return slices.ContainsFunc(r.Limits, func(l Limit) bool { return l.HoldsSlot() })
}

// HoldsSlots reports whether a rule of m that is not off has a concurrency limit.
func (m *Matcher) HoldsSlots() bool {
	return slices.ContainsFunc(m.rules, func(r *Rule) bool { return r.Mode != ModeOff && r.HoldsSlots() })
}

// readConcurrency reads a limit of the requests that run at the same time.
func (c *compiler) readConcurrency(o *parse.Object) numbers {
	most, mostOK := 0, false
	if f := o.Require("max", "the most requests that run at the same time, as in 5"); f != nil {
		n, err := strconv.Atoi(f.Text)
		if mostOK = f.Kind == parse.KindNumber && err == nil && n >= 1 && n <= bucket.MaxSlots; mostOK {
			most = n
		} else {
			c.Add(f, fmt.Sprintf("max must be a whole number between 1 and %d", bucket.MaxSlots), "it is the most requests that run at the same time")
		}
	}
	lease, leaseOK := time.Duration(0), false
	if f := o.Require("lease", `the time after which a slot of a crashed process is free, as in "30s"`); f != nil {
		lease, leaseOK = c.Duration(f, "lease", "30s")
		if leaseOK && (lease < minLease || lease > maxLease) {
			c.Add(f, fmt.Sprintf("lease must be between %s and %s", inspect.FormatDuration(minLease), inspect.FormatDuration(maxLease)),
				"requests may run longer: their process renews the lease")
			leaseOK = false
		}
	}
	return numbers{
		Spec: bucket.Spec{Algorithm: bucket.AlgorithmConcurrency, Rate: bucket.Rate{Tokens: bucket.Tokens(most) * bucket.Token, Per: lease}},
		ok:   mostOK && leaseOK,
	}
}

// checkSlotFields reports fields of a rule for its limits if all of its limits are concurrency limits.
func (c *compiler) checkSlotFields(d *draft, o *parse.Object) {
	if len(d.Limits) == 0 || slices.ContainsFunc(d.Limits, func(l Limit) bool { return !l.HoldsSlot() }) {
		return
	}
	names := []string{"penalty", "charge_on"}
	if d.sharesWith != nil { // the table of the rule has them
		names = append(names, costFields...)
	}
	for _, name := range names {
		if f := o.Field(name); f != nil {
			c.AddAt(f, name+" has no effect on a concurrency limit", "remove it, or add another limit: a request holds one slot until it ends, whatever its cost and its outcome")
		}
	}
}
