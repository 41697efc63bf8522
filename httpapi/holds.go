// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// The members of the bodies about holds.
var (
	holdMembers    = []string{"attributes", "cost", "max_wait", "id", "ttl", "on_expiry"}
	settleMembers  = []string{"hold", "cost", "usage", "model"}
	releaseMembers = []string{"hold"}
	renewMembers   = []string{"hold", "for"}
)

// readHold reads the body of a request about a hold, and calls member for each member.
func (a *API) readHold(w http.ResponseWriter, r *http.Request, members []string, member func(d *decoder, name string), act func(buf *buffer) *api.Problem) *api.Problem {
	if p := a.checkSender(w, r); p != nil {
		return p
	}
	if r.URL.RawQuery != "" {
		if _, p := parseQuery(r); p != nil {
			return p
		}
	}
	buf := buffers.Get().(*buffer)
	defer buf.release()
	if p := buf.readBody(w, r); p != nil {
		return p
	}
	d := &buf.decoder
	if p := d.open(buf.in); p != nil {
		return p
	}
	d.maxWait = a.maxWait
	for name := range d.members(members) {
		member(d, name)
	}
	member(d, "") // the end
	if p := d.close(); p != nil {
		return p
	}
	return act(buf)
}

func (a *API) hold(w http.ResponseWriter, r *http.Request) *api.Problem {
	var req mete.Request
	var options mete.HoldOptions
	return a.readHold(w, r, holdMembers, func(d *decoder, name string) {
		switch name {
		case "":
			d.add(req)
		case "ttl":
			options.TTL = d.holdTTL()
		case "on_expiry":
			const hint = `; write "keep" or "refund", or leave it out`
			switch text := d.wantString("the action on expiry is not a string" + hint); text {
			case "keep":
				options.Refund = false
			case "refund":
				options.Refund = true
			default:
				d.fail(fmt.Sprintf("on_expiry is %q", clip(text)) + hint)
			}
		default:
			d.member(name, &req)
		}
	}, func(buf *buffer) *api.Problem {
		h, err := a.lim.Hold(r.Context(), req, options)
		if err != nil {
			return holdProblem(err)
		}
		x := api.Hold{Decision: decisionOf(&h.Decision, []api.Limit{}), Hold: h.ID}
		x.UnknownAttributes = a.unknownAttributes(&req)
		if !h.Expires.IsZero() {
			x.Expires = new(h.Expires.UTC())
		}
		return serveJSON(w, x)
	})
}

func (a *API) settle(w http.ResponseWriter, r *http.Request) *api.Problem {
	id, cost := "", bucket.Tokens(-1)
	var usage *policy.TokenUsage
	model := ""
	return a.readHold(w, r, settleMembers, func(d *decoder, name string) {
		switch name {
		case "":
			d.requireHold(id)
			switch {
			case cost >= 0 && usage != nil:
				d.fail(`"cost" and "usage" are both there; send one of them`)
			case cost < 0 && usage == nil && model != "":
				d.fail(`"usage" is missing beside the model; send the tokens that it used, such as {"input": 812, "output": 208}`)
			case cost >= 0 && model != "":
				d.fail(`"model" has no effect on a cost; send the usage, or leave the model out`)
			case cost < 0 && usage == nil:
				d.fail(`"cost" is missing; send the actual cost, such as 12 or 0, or the usage of a model, such as {"input": 812, "output": 208}`)
			}
		case "hold":
			id = d.holdID()
		case "cost":
			cost = d.amount("the cost", "; 0 refunds the hold", "")
		case "usage":
			usage = d.usage()
		case "model":
			const hint = "; send the name of the model that answered, or leave it out"
			if model = d.wantString("the model is not a string" + hint); model == "" {
				d.fail("the model is empty" + hint)
			}
		}
	}, func(*buffer) *api.Problem {
		if usage != nil {
			status, err := a.lim.SettleUsage(r.Context(), id, *usage, model)
			return serveHold(w, status, err)
		}
		status, err := a.lim.Settle(r.Context(), id, mete.TokensOf(cost))
		return serveHold(w, status, err)
	})
}

func (a *API) release(w http.ResponseWriter, r *http.Request) *api.Problem {
	id := ""
	return a.readHold(w, r, releaseMembers, func(d *decoder, name string) {
		if name == "" {
			d.requireHold(id)
			return
		}
		id = d.holdID()
	}, func(*buffer) *api.Problem {
		status, err := a.lim.Release(r.Context(), id)
		return serveHold(w, status, err)
	})
}

func (a *API) renew(w http.ResponseWriter, r *http.Request) *api.Problem {
	id, ttl := "", time.Duration(0)
	return a.readHold(w, r, renewMembers, func(d *decoder, name string) {
		switch name {
		case "":
			d.requireHold(id)
			if ttl == 0 {
				d.fail(`"for" is missing; send the time until the new expiry, such as "5m"`)
			}
		case "hold":
			id = d.holdID()
		case "for":
			ttl = d.holdTTL()
		}
	}, func(*buffer) *api.Problem {
		status, err := a.lim.Renew(r.Context(), id, ttl)
		return serveHold(w, status, err)
	})
}

// usage reads the tokens of one request to a language model.
func (d *decoder) usage() *policy.TokenUsage {
	const hint = "send whole numbers of tokens, such as {\"input\": 812, \"output\": 208}"
	var u policy.TokenUsage
	for class := range d.members(policy.TokenClasses()) {
		switch text, ok := d.number(); {
		case !ok && d.startsValue() && !d.startsNumber():
			d.fail("the number of tokens is not a number; " + hint)
		case !ok:
			d.failSyntax("a number")
		default:
			if err := u.Set(class, text); err != nil {
				d.fail(strings.TrimPrefix(err.Error(), "usage: "))
			}
		}
	}
	return &u
}

func (d *decoder) holdID() string {
	id := d.wantString("the hold is not a string; send the member hold of the response of /v1/hold")
	d.requireHold(id)
	return id
}

func (d *decoder) requireHold(id string) {
	if id == "" {
		d.fail(`"hold" is missing or empty; send the member hold of the response of /v1/hold`)
	}
}

// holdTTL reads the time until a hold expires.
func (d *decoder) holdTTL() time.Duration {
	const hint = `write a number and a unit in a string, such as "30s" or "5m"`
	text := d.wantString("the time until the expiry is not a string; " + hint)
	ttl, err := bucket.ParseDuration(text)
	if err != nil {
		d.fail(fmt.Sprintf("%q is not a duration; %s", clip(text), hint))
	} else if store.CheckHoldTTL(ttl) != nil {
		d.fail(fmt.Sprintf("%q is not between 1ms and 168h; %s", clip(text), hint))
	}
	return max(ttl, time.Millisecond)
}

func serveHold(w http.ResponseWriter, status store.HoldStatus, err error) *api.Problem {
	if err != nil {
		return holdProblem(err)
	}
	x := api.HoldStatus{State: status.State.String(), Settled: status.Settled}
	if status.State == store.HoldSettled && status.Expires != 0 && status.Actual != store.Keep {
		x.Cost = new(api.Amount(status.Actual))
	}
	if status.Expires != 0 {
		x.Expires = new(status.Expires.Time().UTC())
	}
	return serveJSON(w, x)
}

// holdProblem explains an error about a hold. The names of rules are in decisions too.
func holdProblem(err error) *api.Problem {
	var refused *mete.HoldError
	switch {
	case errors.As(err, &refused):
		return api.NewProblem(http.StatusConflict, refused.Error())
	case errors.Is(err, store.ErrHoldUnknown):
		return api.NewProblem(http.StatusNotFound, "no such hold: it never existed, or it ended more than two minutes ago")
	case errors.Is(err, store.ErrHoldEnded):
		return api.NewProblem(http.StatusConflict, "the hold has ended: it has expired, or it is settled and cannot be renewed")
	case errors.Is(err, store.ErrHoldKeys):
		return api.NewProblem(http.StatusConflict, "the id belongs to a hold of other buckets; send a new id")
	case errors.Is(err, mete.ErrDebt):
		return api.NewProblem(http.StatusConflict, "a limit cannot owe the excess over the hold; the hold stays open: settle it with a smaller cost, or later")
	case errors.Is(err, store.ErrTooManyHolds):
		return api.NewProblem(http.StatusServiceUnavailable, "there are too many open holds; settle some, or use a shorter ttl")
	case errors.Is(err, errors.ErrUnsupported):
		return api.NewProblem(http.StatusConflict, "the store has no holds; use the store in memory, Redis or PostgreSQL")
	case errors.Is(err, store.ErrHold):
		return api.NewProblem(http.StatusBadRequest, err.Error())
	}
	return errorProblem(err)
}
