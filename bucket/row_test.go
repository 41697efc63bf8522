// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"fmt"
	"testing"

	"github.com/metehq/mete/bucket"
)

// TestRow_AgreesWithTheOracle plays takes, peeks, refunds and cancellations of up to four limits of any kind on
// one row.
func TestRow_AgreesWithTheOracle(t *testing.T) {
	r := random(130)
	for range 4000 {
		var w twin
		var limits []*oracleLimit
		for range 1 + r.IntN(4) {
			limits = append(limits, randomOf(r, kinds[r.IntN(len(kinds))].spec))
		}
		o, now := limits[0], upTo(r, 1<<50)
		for range 40 {
			if r.IntN(3) == 0 {
				o = limits[r.IntN(len(limits))]
			}
			now = max(min(walk(r, o, now), 1<<52), 0)
			for i := range w.oracle { // the oracle of steps counts them one by one
				if w.oracle[i].o.beyond(w.oracle[i].l) {
					w = twin{}
					break
				}
			}
			switch r.IntN(12) {
			case 0:
				amount := price(r, o)
				w.row = w.row.Refund(bucket.Instant(now), bucket.Tokens(amount))
				w.oracle.refund(now, amount)
				w.log = append(w.log, fmt.Sprintf("at %d refund %d", now, amount))
				w.check(t, now)
			case 1, 2, 3:
				if len(w.takes) == 0 {
					continue
				}
				i := r.IntN(len(w.takes))
				c := w.takes[i]
				w.takes = append(w.takes[:i], w.takes[i+1:]...)
				amount := c.take.cost
				if r.IntN(2) == 0 {
					amount = upTo(r, amount)
				}
				w.row = w.row.Cancel(&c.l.limit, bucket.Instant(now), bucket.Tokens(amount), c.taken)
				w.oracle.cancel(c.l, now, amount, c.take)
				w.log = append(w.log, fmt.Sprintf("at %d cancel %d of %+v, %v", now, amount, c.taken, c.l.limit))
				w.check(t, now)
			case 4:
				w.ask(t, o, now, price(r, o), patience(r, o), 'p')
			case 5:
				w.ask(t, o, now, price(r, o), patience(r, o), 'd')
			default:
				w.ask(t, o, now, price(r, o), patience(r, o), 't')
			}
		}
	}
}
