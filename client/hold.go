// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/metehq/mete/api"
)

// A Hold is the server's response to a hold: a decision and, if it is Allowed, the ID of the hold.
type Hold = api.Hold

// A HoldStatus is the state of a hold after a call.
type HoldStatus = api.HoldStatus

// HoldOptions are the terms of a new hold. The zero HoldOptions hold for a minute and keep the charge.
type HoldOptions struct {
	TTL    time.Duration // until the hold expires, at most 7 days; 0 means a minute
	Refund bool          // refund an expired hold
}

// Hold takes the request's estimated cost, and stores the take as a hold. Any client of the same servers can settle
// it by its ID. With a [Request.ID] the call may be retried, and the request is charged once. The slots of concurrency limits
// stay when the hold ends: see [Client.ReleaseSlots].
func (c *Client) Hold(ctx context.Context, req Request, options HoldOptions) (Hold, error) {
	if options.TTL < 0 {
		return Hold{}, &Error{Op: "hold", Kind: KindRefused, Err: fmt.Errorf("client: ttl %v: must not be negative", options.TTL)}
	}
	text, err := json.Marshal(req)
	if err != nil {
		return Hold{}, &Error{Op: "hold", Kind: KindRefused, Err: err}
	}
	var body api.HoldRequest
	if err := json.Unmarshal(text, &body); err != nil {
		return Hold{}, &Error{Op: "hold", Kind: KindRefused, Err: err}
	}
	if options.TTL > 0 {
		body.TTL = options.TTL.String()
	}
	if options.Refund {
		body.OnExpiry = "refund"
	}
	var answer struct {
		Hold
		Allowed *bool `json:"allowed"` // shadows the Decision's field to detect its absence
	}
	if err := c.postHold(ctx, "hold", body, &answer); err != nil {
		return Hold{}, err
	}
	if answer.Allowed == nil {
		return Hold{}, &Error{Op: "hold", Kind: KindInvalidResponse, Err: errors.New("the response is not a decision")}
	}
	answer.Hold.Allowed = *answer.Allowed
	return answer.Hold, nil
}

// Settle replaces the estimate of a hold by the actual cost. It may be repeated after any error. An unknown or ended hold
// is a [KindRefused] error with the status 404 or 409. The latter is also the status for limits in different units, such as
// tokens and money: use [Client.SettleUsage].
func (c *Client) Settle(ctx context.Context, hold string, cost float64) (HoldStatus, error) {
	amount, err := amountOf(cost)
	if err != nil {
		return HoldStatus{}, &Error{Op: "settle", Kind: KindRefused, Err: err}
	}
	return c.endHold(ctx, "settle", api.HoldSettlement{Hold: hold, Cost: &amount})
}

// A TokenUsage is the number of tokens of one request to a language model, in classes without overlap.
type TokenUsage = api.TokenUsage

// SettleUsage is [Client.Settle] by the tokens that a language model used. Each limit computes its own cost from them, by its
// weights or its prices. Model is the model that answered; if it is empty, it is the ai:model of the hold.
func (c *Client) SettleUsage(ctx context.Context, hold string, usage TokenUsage, model string) (HoldStatus, error) {
	return c.endHold(ctx, "settle", api.HoldSettlement{Hold: hold, Usage: &usage, Model: model})
}

// Release settles a hold with 0, because its work did not happen.
func (c *Client) Release(ctx context.Context, hold string) (HoldStatus, error) {
	return c.endHold(ctx, "release", api.HoldRelease{Hold: hold})
}

// Renew makes an open hold expire after ttl from now.
func (c *Client) Renew(ctx context.Context, hold string, ttl time.Duration) (HoldStatus, error) {
	return c.endHold(ctx, "renew", api.HoldRenewal{Hold: hold, For: ttl.String()})
}

func (c *Client) endHold(ctx context.Context, op string, body any) (HoldStatus, error) {
	var status HoldStatus
	if err := c.postHold(ctx, op, body, &status); err != nil {
		return HoldStatus{}, err
	}
	if status.State == "" {
		return HoldStatus{}, &Error{Op: op, Kind: KindInvalidResponse, Err: errors.New("the response is not about a hold")}
	}
	return status, nil
}

func (c *Client) postHold(ctx context.Context, op string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return &Error{Op: op, Kind: KindRefused, Err: err}
	}
	return c.send(ctx, op, http.MethodPost, c.base.JoinPath("v1", op), text, answer)
}
