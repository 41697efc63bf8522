// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
	"github.com/metehq/mete/store"
)

// errOvertaken is the error of a loan if Redis has already processed a later loan of the same holder.
var errOvertaken = errors.New("a later loan of this holder was already processed")

type lender struct{ store *Store }

func (l lender) Borrow(ctx context.Context, loan lease.Loan) (lease.Grant, error) {
	charges := [1]store.Charge{{Key: loan.Key, Limit: loan.Limit, Leased: true}}
	a := newAsk(opBorrow, charges[:], mete.Mode{})
	a.loan = loan
	l.store.addLeases(a)
	if err := a.submit(ctx, l.store.laneFor(charges[:]), l.store.config.Timeout); err != nil {
		return lease.Grant{}, withOp(err, "borrow")
	}
	grant := a.grant
	a.release()
	return grant, nil
}

type activeLease struct {
	until  bucket.Instant
	amount bucket.Tokens
}

// parseLeases reads until,amount;until,amount in ascending order of the ends.
func parseLeases(text string) ([]activeLease, error) {
	var all []activeLease
	for part := range strings.SplitSeq(text, ";") {
		until, amount, _ := strings.Cut(part, ",")
		u, err := strconv.ParseInt(until, 10, 64)
		n, err2 := strconv.ParseInt(amount, 10, 64)
		if err != nil || err2 != nil {
			return nil, newAnswerError("invalid leases", text)
		}
		all = append(all, activeLease{bucket.Instant(u), bucket.Tokens(n)})
	}
	return all, nil
}

// waitForLeases returns the wait from now until cost is available. Leased tokens count as spent until their lease
// ends.
func waitForLeases(l bucket.Limit, state bucket.State, all []activeLease, now bucket.Instant, cost bucket.Tokens) time.Duration {
	var sum bucket.Tokens
	for _, e := range all {
		sum += e.amount
	}
	at := max(now, state.AsOf)
	for len(all) > 0 && sum > l.Capacity()-cost {
		at = max(at, all[0].until)
		state, _ = l.Reserve(state, at, 0, bucket.Forced) // spent at that instant
		state.Spent = max(state.Spent, int64(min(sum, l.Capacity()))*l.Unit())
		sum, all = sum-all[0].amount, all[1:]
	}
	wait := l.Peek(state, at, cost, 0).RetryAfter
	if wait == bucket.Never {
		return wait
	}
	late := min(time.Duration(at-now)*time.Microsecond, bucket.LongestWait)
	return late + min(wait, bucket.LongestWait-late)
}
