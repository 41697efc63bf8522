// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// A holdUsage tells how the usage of a language model settles a hold. The ID of the hold contains it, because another process
// may settle the hold, under a later policy.
type holdUsage struct {
	mixed bool // a single cost cannot settle the enforced limits
	units []holdUnit
}

// A holdUnit is the unit of the costs under some limits of a hold: tokens with their weights, or money. The units of a
// [holdUsage] have the numbers from 1 on in [store.Terms]. Costs of unit 0 stay as they were taken.
type holdUnit struct {
	cost  policy.UsageCost
	added bucket.Tokens // by the request's own charges to the same bucket
	rule  string        // with the prices; empty unless the unit is money
}

const (
	usageSeparator = "~"
	maxHoldUnits   = store.MaxCharges - 1
	maxHoldText    = 1 << 14 // of a holdUsage, in bytes: more than the longest one has
)

// aiModel is the model that a request names.
var aiModel, _ = policy.ParseAttribute("ai:model")

// readUnits finds the units of the enforced limits. A request with a cost of its own, or with parts, is settled by cost.
func (p *holdPlan) readUnits() error {
	claims := p.enforced.claims
	mixed, other := false, false
	for i := range claims {
		c := &claims[i]
		for j := range claims[:i] {
			mixed = mixed || p.req.Cost == 0 && !c.status.Limit.SharesUnit(claims[j].status.Limit)
		}
		if mixed && len(p.req.Parts) > 0 {
			return &HoldError{c.status.Rule.Name, "limits of tokens and of money, or with different weights, cannot be held together for several parts: hold each part on its own"}
		}
	}
	if p.req.Cost != 0 || len(p.req.Parts) > 0 {
		return nil
	}
	p.usage = &holdUsage{mixed: mixed}
	for i := range claims {
		c := &claims[i]
		if holdsSlot(c.limit) {
			continue
		}
		x := expense{Charge: store.Charge{Key: c.status.Key}, asked: c.asked}
		x.setFixedPart(p.req, c, false)
		if counts := p.unitOf(&x, c) > 0; counts || !c.status.Limit.AI() {
			other = other || !counts && x.settled
			continue
		}
		return &HoldError{c.status.Rule.Name, fmt.Sprintf("more than %d limits count tokens or money differently: remove some", maxHoldUnits)}
	}
	if other && len(p.usage.units) == 0 {
		p.usage = nil // the usage does not determine the cost
	}
	return nil
}

// unitOf returns the number of the unit of an expense, and adds its unit. It is 0 if the usage does not change the cost.
func (p *holdPlan) unitOf(x *expense, c *claim) uint8 {
	if p.usage == nil {
		return 0
	}
	model := ""
	if p.req.Attributes != nil {
		model, _ = p.req.Attributes.Lookup(aiModel)
	}
	cost, ok := c.status.Limit.UsageCost(model)
	if !ok {
		return 0
	}
	unit := holdUnit{cost: cost, added: x.asked - x.byRule - x.fixed}
	if cost.Money() {
		unit.rule = c.status.Rule.Name
	}
	for i, known := range p.usage.units {
		if known == unit {
			return uint8(i + 1)
		}
	}
	if len(p.usage.units) == maxHoldUnits {
		return 0
	}
	p.usage.units = append(p.usage.units, unit)
	return uint8(len(p.usage.units))
}

// text returns u as the end of an ID.
func (u *holdUsage) text() string {
	if u == nil {
		return ""
	}
	b := []byte{0}
	if u.mixed {
		b[0] = 1
	}
	for i := range u.units {
		unit := &u.units[i]
		b = binary.AppendUvarint(b, uint64(unit.added))
		b = binary.AppendUvarint(b, uint64(len(unit.rule)))
		b = unit.cost.Append(append(b, unit.rule...))
	}
	return usageSeparator + base64.RawURLEncoding.EncodeToString(b)
}

func parseHoldUsage(text string) (u *holdUsage, ok bool) {
	if len(text) > maxHoldText {
		return nil, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) == 0 || b[0] > 1 {
		return nil, false
	}
	u = &holdUsage{mixed: b[0] == 1}
	for b = b[1:]; len(b) > 0; {
		unit := holdUnit{}
		added, size := binary.Uvarint(b)
		if size <= 0 || added > uint64(bucket.MaxTokens) || len(u.units) == maxHoldUnits {
			return nil, false
		}
		unit.added, b = bucket.Tokens(added), b[size:]
		length, size := binary.Uvarint(b)
		if size <= 0 || length > uint64(len(b)-size) {
			return nil, false
		}
		unit.rule, b = string(b[size:size+int(length)]), b[size+int(length):]
		if unit.cost, b, ok = policy.ReadUsageCost(b); !ok {
			return nil, false
		}
		u.units = append(u.units, unit)
	}
	return u, true
}

// SettleUsage is [Limiter.Settle] by the tokens that a language model used. Each limit computes its own cost from them, as
// the gateway does: limits of tokens by their weights, and limits of money by their prices. Other limits keep the cost that the
// hold took.
//
// The weights and prices are those of the policy that took the hold, for its attribute ai:model. If another model has answered,
// pass its name: its prices are those of the rule in the current policy, if it still counts money.
//
// The error is a [HoldError] for a hold that has a [Request.Cost], [Request.Parts], or only costs of other kinds: use
// [Limiter.Settle]. It wraps [ErrCost] if a number is below 0 or above a billion.
func (l *Limiter) SettleUsage(ctx context.Context, id string, usage policy.TokenUsage, model string) (store.HoldStatus, error) {
	if err := usage.Check(); err != nil {
		return store.HoldStatus{}, fmt.Errorf("%w: %w", ErrCost, err)
	}
	parsed, ok := parseHoldID(id)
	amounts := []bucket.Tokens{store.Keep}
	switch {
	case !ok || parsed.isEmpty():
	case parsed.usage == nil:
		l.reportHold(ctx, "settle", "error")
		return store.HoldStatus{}, &HoldError{Reason: "no limit counted the tokens of a language model for it: settle it with a cost"}
	default:
		for _, unit := range parsed.usage.units {
			cost := unit.cost
			if model != "" {
				cost = cost.WithModel(l.policy.Load(), unit.rule, model)
			}
			amounts = append(amounts, min(unit.added+cost.Of(&usage), bucket.MaxTokens))
		}
	}
	return l.endHold(ctx, "settle", id, amounts...)
}
