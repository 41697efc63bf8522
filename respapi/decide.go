// SPDX-License-Identifier: Apache-2.0

package respapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/store"
)

// take executes METE.TAKE [COST n] [ID id] [MAXWAIT ms] attribute value [attribute value …].
func take(c *client, args [][]byte) { c.decide(args, c.server.lim.Take) }

// peek executes METE.PEEK, with the arguments of METE.TAKE.
func peek(c *client, args [][]byte) { c.decide(args, c.server.lim.Peek) }

func (c *client) decide(args [][]byte, ask func(context.Context, mete.Request) (mete.Decision, error)) {
	b := c.busy
	req, problem := c.request(args[1:])
	if problem != "" {
		b.fail("ERR " + problem)
		return
	}
	d, err := ask(c.server.ctx, req)
	if err != nil {
		b.failDecision(err)
		return
	}
	b.decision(&d, 9)
	c.appendUnknown()
}

// appendUnknown appends the unknown attributes.
func (c *client) appendUnknown() {
	unknown := c.unknownAttributes()
	c.busy.array(len(unknown))
	for _, name := range unknown {
		c.busy.bulk(name)
	}
}

// decision appends the first eight elements of a decision with the given length. The unknown attributes follow.
func (r *reply) decision(d *mete.Decision, length int) {
	r.array(length)
	decider := d.Decider()
	if decider == nil {
		limited, retry := int64(0), int64(-1)
		if !d.Allowed {
			limited, retry = 1, seconds(d.RetryAfter)
		}
		r.integer(limited)
		r.integer(-1)
		r.integer(-1)
		r.integer(retry)
		r.integer(max(retry, 0))
	} else {
		whole := d.WithLimits(*decider)
		r.throttled(&whole, decider.Snapshot.Limit.Capacity().Whole())
	}
	r.bulk(d.Rule)
	r.bulk(d.Reason)
	r.integer(milliseconds(d.Wait))
}

func milliseconds(d time.Duration) int64 {
	whole := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		whole++
	}
	return whole
}

// refund executes METE.REFUND, with the arguments of METE.TAKE.
func refund(c *client, args [][]byte) { c.change("refund", args, c.server.lim.Refund) }

// reset executes METE.RESET, with the arguments of METE.TAKE.
func reset(c *client, args [][]byte) { c.change("reset", args, c.server.lim.Reset) }

func (c *client) change(what string, args [][]byte, do func(context.Context, mete.Request) error) {
	b := c.busy
	req, problem := c.request(args[1:])
	if problem != "" {
		b.fail("ERR " + problem)
		return
	}
	err := do(c.server.ctx, req)
	if report := c.server.config.OnChange; report != nil {
		report(c.server.ctx, Change{Command: what, User: c.user, Role: c.role, Address: c.nc.RemoteAddr().String(), Request: &req, Err: err})
	}
	if err != nil {
		b.failDecision(err)
		return
	}
	b.status("OK")
}

// request parses the arguments of a METE command. Its texts are the same as in the HTTP API. The names of options are
// in upper case, because custom attributes are in lower case.
func (c *client) request(args [][]byte) (req mete.Request, problem string) {
	for len(args) > 0 && isOption(args[0]) {
		if len(args) == 1 {
			return req, fmt.Sprintf("%s has no value", args[0])
		}
		text := string(args[1])
		switch string(args[0]) {
		case "COST":
			req.Cost, problem = parseCost(text)
		case "ID":
			req.ID, problem = text, checkID(text)
		case "MAXWAIT":
			req.MaxWait, problem = c.server.parseMaxWait(args[1])
		}
		if problem != "" {
			return req, problem
		}
		args = args[2:]
	}
	req.Attributes = &c.busy.facts
	return req, c.busy.facts.parse(args)
}

func isOption(word []byte) bool {
	return bytes.Equal(word, []byte("COST")) || bytes.Equal(word, []byte("ID")) || bytes.Equal(word, []byte("MAXWAIT"))
}

func parseCost(text string) (mete.Tokens, string) {
	const hint = "; write a number above 0 with at most 3 decimals, such as 1 or 0.25, or leave COST out"
	t, err := bucket.ParseTokens(text)
	switch {
	case err != nil:
		return 0, strings.TrimPrefix(err.Error(), bucket.ErrTokens.Error()+": ") + hint
	case t == 0:
		return 0, "the cost is 0, which spends nothing; use METE.PEEK, or leave COST out to use the policy's cost"
	}
	return mete.TokensOf(t), ""
}

func checkID(id string) string {
	const hint = "; write up to 128 printable ASCII characters, or leave ID out"
	switch {
	case id == "":
		return "the id is empty" + hint
	case len(id) > store.MaxIDBytes:
		return "the id is too long" + hint
	case strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r > '~' }):
		return "the id has invalid characters" + hint
	}
	return ""
}

func (s *Server) parseMaxWait(text []byte) (time.Duration, string) {
	n, ok := parseInt(text)
	switch {
	case !ok || n < 0:
		return 0, "MAXWAIT is not a number of milliseconds; write a whole number such as 500"
	case n > s.config.MaxWait.Milliseconds():
		return 0, fmt.Sprintf("MAXWAIT is more than %v, the longest wait that this server accepts; send a shorter one", prose.Duration(s.config.MaxWait))
	}
	return time.Duration(n) * time.Millisecond, ""
}

// failDecision appends an error of the limiter. It hides the store's error, which may contain host names.
func (r *reply) failDecision(err error) {
	var failed *mete.StoreError
	switch {
	case errors.Is(err, mete.ErrCost):
		r.fail("ERR the cost is out of range; send a smaller one")
	case errors.Is(err, mete.ErrRequest):
		r.fail("ERR the request is invalid")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		r.fail("UNAVAILABLE the request timed out; tokens may have been spent")
	case errors.As(err, &failed) && failed.Spent == mete.NotSpent:
		r.fail("UNAVAILABLE the store is unavailable and nothing was changed; try again later")
	default:
		r.fail("UNAVAILABLE the store did not respond, and the bucket may or may not have changed; peek before you retry")
	}
}
