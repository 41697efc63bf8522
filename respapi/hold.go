// SPDX-License-Identifier: Apache-2.0

package respapi

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// hold executes METE.HOLD ttl [EXPIRY keep|refund] [COST n] [ID id] [MAXWAIT ms] attribute value [attribute value …].
func hold(c *client, args [][]byte) {
	b, args := c.busy, args[1:]
	options, problem := mete.HoldOptions{}, ""
	if options.TTL, problem = parseTTL(args[0]); problem != "" {
		b.fail("ERR " + problem)
		return
	}
	if args = args[1:]; len(args) > 1 && bytes.Equal(args[0], []byte("EXPIRY")) {
		switch string(args[1]) {
		case "keep":
		case "refund":
			options.Refund = true
		default:
			b.fail("ERR EXPIRY is not keep or refund")
			return
		}
		args = args[2:]
	}
	req, problem := c.request(args)
	if problem != "" {
		b.fail("ERR " + problem)
		return
	}
	h, err := c.server.lim.Hold(c.server.ctx, req, options)
	if err != nil {
		b.failHold(err)
		return
	}
	b.decision(&h.Decision, 11)
	c.appendUnknown()
	b.bulk(h.ID)
	slot := ""
	if h.Slots != nil {
		slot = h.Slots.ID().String()
	}
	b.bulk(slot)
}

// settle executes METE.SETTLE id cost, and METE.SETTLE id [MODEL name] USAGE class n [class n …].
func settle(c *client, args [][]byte) {
	if len(args) > 3 || is(args[2], "usage") || is(args[2], "model") {
		c.settleUsage(string(args[1]), args[2:])
		return
	}
	cost, err := bucket.ParseTokens(string(args[2]))
	if err != nil {
		c.busy.fail("ERR " + strings.TrimPrefix(err.Error(), bucket.ErrTokens.Error()+": ") + "; write a number with at most 3 decimals, such as 12 or 0")
		return
	}
	status, err := c.server.lim.Settle(c.server.ctx, string(args[1]), mete.TokensOf(cost))
	c.holdStatus(status, err)
}

func (c *client) settleUsage(id string, args [][]byte) {
	model := ""
	if len(args) > 2 && is(args[0], "model") {
		model, args = string(args[1]), args[2:]
	}
	if len(args) < 3 || len(args)%2 == 0 || !is(args[0], "usage") {
		c.busy.fail("ERR syntax error; write METE.SETTLE id cost, or METE.SETTLE id [MODEL name] USAGE class tokens, such as USAGE input 812 output 208")
		return
	}
	var usage policy.TokenUsage
	seen := map[string]bool{}
	for i := 1; i < len(args); i += 2 {
		class := string(args[i])
		if seen[class] {
			c.busy.fail(fmt.Sprintf("ERR usage: class %q is there twice: send it once", class))
			return
		}
		seen[class] = true
		if err := usage.Set(class, string(args[i+1])); err != nil {
			c.busy.fail("ERR " + err.Error())
			return
		}
	}
	status, err := c.server.lim.SettleUsage(c.server.ctx, id, usage, model)
	c.holdStatus(status, err)
}

// release executes METE.RELEASE HOLD id.
func release(c *client, args [][]byte) {
	if !is(args[1], "hold") {
		c.busy.fail("ERR syntax error; write METE.RELEASE HOLD id")
		return
	}
	status, err := c.server.lim.Release(c.server.ctx, string(args[2]))
	c.holdStatus(status, err)
}

// renew executes METE.RENEW HOLD id ttl.
func renew(c *client, args [][]byte) {
	ttl, problem := parseTTL(args[3])
	switch {
	case !is(args[1], "hold"):
		c.busy.fail("ERR syntax error; write METE.RENEW HOLD id ttl")
		return
	case problem != "":
		c.busy.fail("ERR " + problem)
		return
	}
	status, err := c.server.lim.Renew(c.server.ctx, string(args[2]), ttl)
	c.holdStatus(status, err)
}

// parseTTL parses the milliseconds until a hold expires.
func parseTTL(text []byte) (time.Duration, string) {
	n, ok := parseInt(text)
	if !ok || n < 1 || n > store.MaxHoldTTL.Milliseconds() {
		return 0, "the ttl is not a number of milliseconds between 1 and 604800000; write a whole number such as 60000"
	}
	return time.Duration(n) * time.Millisecond, ""
}

// holdStatus appends the state, whether this call has settled the hold, the settled cost, and the expiry in Unix
// milliseconds. The cost is empty after a settlement by usage.
func (c *client) holdStatus(status store.HoldStatus, err error) {
	b := c.busy
	if err != nil {
		b.failHold(err)
		return
	}
	settled := int64(0)
	if status.Settled {
		settled = 1
	}
	b.array(4)
	b.bulk(status.State.String())
	b.integer(settled)
	if status.Actual == store.Keep {
		b.bulk("")
	} else {
		b.bulk(status.Actual.String())
	}
	b.integer(int64(status.Expires) / 1000)
}

// failHold appends an error about a hold.
func (r *reply) failHold(err error) {
	var refused *mete.HoldError
	switch {
	case errors.As(err, &refused):
		r.fail("ERR " + refused.Error())
	case errors.Is(err, store.ErrHoldUnknown):
		r.fail("NOHOLD no such hold: it never existed, or it ended more than two minutes ago")
	case errors.Is(err, store.ErrHoldEnded):
		r.fail("HOLDENDED the hold has expired, or it is settled and cannot be renewed")
	case errors.Is(err, mete.ErrDebt):
		r.fail("HOLDDEBT a limit cannot owe the excess over the hold; settle it with a smaller cost, or later")
	case errors.Is(err, store.ErrHoldKeys):
		r.fail("ERR the id belongs to a hold of other buckets; send a new id")
	case errors.Is(err, store.ErrTooManyHolds):
		r.fail("UNAVAILABLE there are too many open holds; settle some, or use a shorter ttl")
	case errors.Is(err, errors.ErrUnsupported):
		r.fail("ERR the store has no holds; use the store in memory, Redis or PostgreSQL")
	default:
		r.failDecision(err)
	}
}
