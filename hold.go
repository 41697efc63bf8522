// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// defaultHoldTTL is the TTL of a hold if [HoldOptions.TTL] is 0.
const defaultHoldTTL = time.Minute

// A Hold is the result of [Limiter.Hold]: a decision and, if it is Allowed, an open hold. Decision.Slots are no part of the
// hold: release them when the work ends.
type Hold struct {
	Decision

	// ID ends or renews the hold, from any process that shares the store. It cannot be guessed. It is empty for a
	// denied request.
	//
	// The ID has no "_" if no bucket has a hold: no rule with a bucket applied, or the store failed. Then Settle and the
	// other methods accept the ID and do nothing.
	ID string

	// Expires is the end of the hold by the store's clock. It is zero if no bucket of an enforced limit has a hold.
	Expires time.Time
}

// HoldOptions are the terms of a new hold. The zero HoldOptions hold for a minute and keep the charge.
type HoldOptions struct {
	// TTL is the time until the hold expires: at least a millisecond and at most [store.MaxHoldTTL]. 0 means a
	// minute.
	TTL time.Duration

	// Refund settles an expired hold with 0 at its expiry. Otherwise an expired hold keeps its charge.
	Refund bool
}

// A HoldError reports that a limit of the request cannot be held, or that a hold cannot be settled in this way. Nothing has
// changed. It wraps [store.ErrHold].
type HoldError struct {
	Rule   string // empty for a limit of the request, and for a settlement
	Reason string
}

func (e *HoldError) Error() string { return addRule(store.ErrHold, e.Rule).Error() + ": " + e.Reason }

// Unwrap returns [store.ErrHold].
func (e *HoldError) Unwrap() error { return store.ErrHold }

// A holdPlan turns the takes of a request into holds.
type holdPlan struct {
	limiter  *Limiter
	holder   store.Holder
	enforced *evaluation // the other evaluations are of shadow rules
	req      *Request
	options  HoldOptions
	base     string   // the first part of the ID
	shadows  int      // takes of shadow rules
	parts    []string // of the ID: the IDs of the store without base
	usage    *holdUsage
	expires  bucket.Instant
}

// Hold takes the request's estimated cost as [Limiter.Take] does, and stores the take as an open hold in the same
// atomic step. Any process that shares the store can settle, release or renew the hold by its ID until it expires.
//
// The step also takes the slots of concurrency limits, but no method of a hold ends or renews them: see [Decision.Slots].
//
// With a [Request.ID], a repeated call charges nothing and returns the same hold. The TTL of the first call applies.
// This needs a store with a secret ([store.KeyDeriver]). If a slot has ended before a repeated call, the call takes it
// again. If none is free, the call is denied, and the hold stays.
//
// If the store fails, the rules' on_store_error decides, as for a take. Such a request has no hold: its local charge
// is final. A limit with shards or leases cannot be held, and the error is a [HoldError]. A shadow rule with such
// a limit keeps the estimate. The error wraps [store.ErrTooManyHolds] if a bucket or the store has too many holds,
// and [errors.ErrUnsupported] if the store has no holds.
func (l *Limiter) Hold(ctx context.Context, req Request, options HoldOptions) (*Hold, error) {
	h := &Hold{}
	err := l.hold(ctx, &req, options, h)
	result := "opened"
	switch {
	case err != nil:
		result = "error"
	case !h.Allowed:
		result = "denied"
	case h.Expires.IsZero():
		result = "unheld"
	}
	l.reportHold(ctx, "hold", result)
	if err != nil {
		return nil, err
	}
	return h, nil
}

func (l *Limiter) hold(ctx context.Context, req *Request, options HoldOptions, h *Hold) error {
	options.TTL = cmp.Or(options.TTL, defaultHoldTTL)
	if err := store.CheckHoldTTL(options.TTL); err != nil {
		return err
	}
	holder, err := l.holder()
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	e, err := l.evaluate(req)
	if err != nil {
		return err
	}
	defer e.release()
	for i := range e.claims {
		if reason := e.claims[i].refusesHold(); reason != "" {
			return &HoldError{e.claims[i].status.Rule.Name, reason}
		}
	}
	plan := holdPlan{limiter: l, holder: holder, enforced: e, req: req, options: options, base: rand.Text()}
	if err := plan.readUnits(); err != nil {
		return err
	}
	e.hold = plan.hold
	if err := l.charge(ctx, e, req, Mode{MaxWait: max(req.MaxWait, 0)}, nil, &h.Decision); err != nil {
		return err
	}
	if h.Allowed {
		h.ID = strings.Join(append([]string{plan.base}, plan.parts...), holdSeparator)
		if len(plan.parts) > 0 {
			h.ID += plan.usage.text()
		}
		if plan.expires != 0 {
			h.Expires = plan.expires.Time()
		}
	}
	l.report(ctx, e, req, &h.Decision)
	return nil
}

// refusesHold returns the reason why the claim's limit cannot be held, or "".
func (c *claim) refusesHold() string {
	switch {
	case c.shards > 1:
		return "a limit with shards cannot be held: remove shards from its rule"
	case c.leased:
		return "a leased limit cannot be held: remove the lease from its rule"
	}
	return ""
}

// hold makes a hold of the charges of e.order. Slots without a bucket become a take, and so do claims of a shadow rule that
// cannot be held.
func (p *holdPlan) hold(ctx context.Context, e *evaluation, charges []store.Charge, mode Mode) ([]bucket.Snapshot, bool, error) {
	shadow, step := e != p.enforced, 0
	if shadow {
		p.shadows++
		step = p.shadows
	}
	bucketAt := slices.IndexFunc(e.order, func(c *claim) bool { return !holdsSlot(c.limit) })
	if bucketAt < 0 || slices.ContainsFunc(e.order, func(c *claim) bool { return c.refusesHold() != "" }) {
		return p.limiter.storeFor(e.sharded).Take(ctx, e.snapshotBuffer(), charges, mode)
	}
	if mode.ID != "" {
		if err := p.deriveID(mode.ID); err != nil {
			return nil, false, err
		}
		mode.ID = ""
	}
	h := store.Hold{ID: p.base + strconv.Itoa(step), TTL: p.options.TTL, Refund: p.options.Refund, Terms: make([]store.Terms, len(e.order))}
	for i, c := range e.order {
		x := expense{Charge: store.Charge{Key: c.status.Key}, asked: c.asked}
		x.setFixedPart(p.req, c, shadow)
		h.Terms[i] = store.Terms{Kept: !x.settled, Fixed: x.fixed, Unit: p.unitOf(&x, c)}
		if c.cost != c.asked {
			h.Terms[i].Asked = c.asked
		}
	}
	snaps, id, err := p.holder.Hold(ctx, e.snapshotBuffer(), charges, mode, h)
	if err != nil || id == "" {
		return snaps, false, err
	}
	p.parts = append(p.parts, strings.TrimPrefix(id, p.base))
	if !shadow {
		_, at := snaps[bucketAt].Verdict()
		p.expires = at.Add(h.TTL)
	}
	return snaps, true, nil
}

// deriveID replaces the first part of the hold's ID by a hash of the request, so that a retry finds the hold. Only
// a process with the store's secret can compute it.
func (p *holdPlan) deriveID(request string) error {
	key, err := p.limiter.HashKey()
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("hold " + request))
	p.base = base32.StdEncoding.EncodeToString(mac.Sum(nil))[:holdBaseBytes]
	return nil
}

// The ID of a hold is a random text with a part for each hold in the store. A part is the number of a take and, in
// Redis Cluster, its slots. The enforced limits have number 0. The text of a [holdUsage] may follow.
const (
	holdSeparator = "_"
	holdBaseBytes = 26 // of rand.Text
	maxHoldParts  = store.MaxCharges
)

// A holdID is the parsed ID of a hold.
type holdID struct {
	enforced string     // the ID in the store of the enforced limits, or ""
	shadow   []string   // those of shadow rules
	usage    *holdUsage // nil if no usage settles the hold
}

// isEmpty reports whether no bucket has a hold.
func (id *holdID) isEmpty() bool { return id.enforced == "" && len(id.shadow) == 0 }

func parseHoldID(text string) (id holdID, ok bool) {
	text, usage, found := strings.Cut(text, usageSeparator)
	if found {
		if id.usage, ok = parseHoldUsage(usage); !ok {
			return holdID{}, false
		}
	}
	base, rest, found := strings.Cut(text, holdSeparator)
	if len(base) != holdBaseBytes || strings.Trim(base, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return holdID{}, false
	}
	if !found {
		return id, true
	}
	parts := strings.Split(rest, holdSeparator)
	if len(parts) > maxHoldParts {
		return holdID{}, false
	}
	for i, part := range parts {
		number, _, _ := strings.Cut(part, ".")
		n, err := strconv.ParseUint(number, 10, 16)
		switch {
		case err != nil:
			return holdID{}, false
		case i == 0 && n == 0:
			id.enforced = base + part
		default:
			id.shadow = append(id.shadow, base+part)
		}
	}
	return id, true
}

// Settle ends a hold and replaces its estimate by the actual cost, as [Reservation.Settle] does. It refunds the rest
// without breaking the limit's bound, or charges the excess as a debt. Fixed costs of rules stay.
//
// Settle may be repeated after any error, from any process. Later calls change nothing and return the first settlement.
// The error wraps [store.ErrHoldEnded] if the hold has expired, and [store.ErrHoldUnknown] if the store has no such hold.
// It wraps [ErrDebt] if a limit cannot owe the excess. The hold is then open, and a later or smaller settlement may
// succeed.
// A store keeps the result of an ended hold for [store.RetryHorizon].
//
// A hold with limits of tokens and of money, or with different weights, has no single amount: the error is a [HoldError]. Use
// [Limiter.SettleUsage].
//
// The work's context has often ended before Settle is called: pass context.WithoutCancel(ctx).
func (l *Limiter) Settle(ctx context.Context, id string, actual Tokens) (store.HoldStatus, error) {
	amount, ok := actual.count()
	if !ok {
		return store.HoldStatus{}, fmt.Errorf("%w: settle %v tokens: must be a multiple of 0.001 between 0 and %v", ErrCost, actual, bucket.MaxTokens)
	}
	if parsed, _ := parseHoldID(id); parsed.usage != nil && parsed.usage.mixed {
		l.reportHold(ctx, "settle", "error")
		return store.HoldStatus{}, &HoldError{Reason: "it has limits of tokens and of money, or with different weights, and no single cost: settle it by the usage of the model, such as input 812 and output 208"}
	}
	return l.endHold(ctx, "settle", id, amount)
}

// Release ends a hold whose work did not happen, as Settle with 0 does. Fixed costs of rules stay.
func (l *Limiter) Release(ctx context.Context, id string) (store.HoldStatus, error) {
	return l.endHold(ctx, "release", id, 0)
}

func (l *Limiter) endHold(ctx context.Context, op, id string, amounts ...bucket.Tokens) (store.HoldStatus, error) {
	status, err := l.callHolds(ctx, op, id, func(h store.Holder, id string) (store.HoldStatus, error) { return h.Settle(ctx, id, amounts...) })
	switch {
	case err == nil && status.State == store.HoldOpen:
		err = fmt.Errorf("%w: the hold stays open: settle it with a smaller amount, or later", ErrDebt)
	case err == nil && status.State == store.HoldExpired:
		err = fmt.Errorf("mete: %s: %w", op, store.ErrHoldEnded)
	}
	result := "settled"
	switch {
	case errors.Is(err, store.ErrHoldUnknown):
		result = "unknown"
	case errors.Is(err, store.ErrHoldEnded):
		result = "expired"
	case errors.Is(err, ErrDebt):
		result = "debt"
	case err != nil:
		result = "error"
	case status.Expires == 0:
		result = "unheld"
	case !status.Settled:
		result = "repeated"
	}
	l.reportHold(ctx, op, result)
	return status, err
}

// Renew makes an open hold expire after ttl from now. The error wraps [store.ErrHoldEnded] if the hold is settled or
// expired, and [store.ErrHoldUnknown] if the store has no such hold.
func (l *Limiter) Renew(ctx context.Context, id string, ttl time.Duration) (store.HoldStatus, error) {
	if err := store.CheckHoldTTL(ttl); err != nil {
		return store.HoldStatus{}, err
	}
	status, err := l.callHolds(ctx, "renew", id, func(h store.Holder, id string) (store.HoldStatus, error) { return h.Renew(ctx, id, ttl) })
	if err == nil && status.State != store.HoldOpen && status.Expires != 0 {
		err = fmt.Errorf("mete: renew: %w", store.ErrHoldEnded)
	}
	result := "renewed"
	switch {
	case errors.Is(err, store.ErrHoldUnknown):
		result = "unknown"
	case errors.Is(err, store.ErrHoldEnded):
		result = "expired"
	case err != nil:
		result = "error"
	case status.Expires == 0:
		result = "unheld"
	}
	l.reportHold(ctx, "renew", result)
	return status, err
}

// callHolds calls f for the holds of an ID. The hold of the enforced limits decides. The holds of shadow rules change
// with it, and their errors do not affect the result.
func (l *Limiter) callHolds(ctx context.Context, op, id string, f func(store.Holder, string) (store.HoldStatus, error)) (store.HoldStatus, error) {
	holder, err := l.holder()
	if err != nil {
		return store.HoldStatus{}, err
	}
	if ctx.Err() != nil {
		return store.HoldStatus{}, contextError(ctx)
	}
	parsed, ok := parseHoldID(id)
	if !ok {
		return store.HoldStatus{}, fmt.Errorf("mete: %s: %w", op, store.ErrHoldUnknown)
	}
	status := store.HoldStatus{State: store.HoldSettled}
	if parsed.enforced != "" {
		status, err = f(holder, parsed.enforced)
		if err != nil && ctx.Err() != nil {
			err = contextError(ctx)
		}
		if err == nil && status.State == store.HoldUnknown {
			err = fmt.Errorf("mete: %s: %w", op, store.ErrHoldUnknown)
		}
		if err != nil || status.State == store.HoldOpen && op != "renew" {
			return status, err
		}
	}
	for _, one := range parsed.shadow {
		if _, err := f(holder, one); err != nil {
			break // the next one would wait just as long
		}
	}
	return status, nil
}

// holder returns the store's holds.
func (l *Limiter) holder() (store.Holder, error) {
	h, ok := store.As[store.Holder](l.store)
	if !ok {
		return nil, fmt.Errorf("mete: hold: %w by the store, which is no store.Holder", errors.ErrUnsupported)
	}
	return h, nil
}

func (l *Limiter) reportHold(ctx context.Context, op, result string) {
	if l.config.OnHold != nil {
		l.config.OnHold(ctx, op, result)
	}
}
