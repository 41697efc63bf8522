// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/metehq/mete/api"
)

// Bucket returns what is in the bucket with a key, as [Client.Top] and an explanation
// show it, masked ones too. A server tells it at its address for administrators alone
// (see httpapi.Config.Admin). A key that no bucket has is a [Refused] error with status
// 404.
func (c *Client) Bucket(ctx context.Context, key string) (api.Bucket, error) {
	const op = "bucket"
	to := c.base.JoinPath("v1", op)
	to.RawQuery = url.Values{"key": {key}}.Encode()
	var b api.Bucket
	if err := c.send(ctx, op, http.MethodGet, to, nil, &b); err != nil {
		return api.Bucket{}, err
	}
	return b, checkBucket(op, &b)
}

// ResetBucket makes the bucket with a key full, and returns what it missed. The reason
// is required: people ask later.
func (c *Client) ResetBucket(ctx context.Context, key, reason string) (api.BucketReset, error) {
	const op = "bucket reset"
	var r api.BucketReset
	body := api.BucketChange{Key: key, Reason: reason}
	if err := c.amend(ctx, op, c.base.JoinPath("v1", "bucket", "reset"), body, &r); err != nil {
		return api.BucketReset{}, err
	}
	return r, checkBucket(op, &r.Before)
}

// TakeBucket takes up to so many tokens from the bucket with a key: as many as are
// there, and none that would be owed. So it undoes a reset, as far as what that gave is
// still there. The reason may be empty.
func (c *Client) TakeBucket(ctx context.Context, key string, tokens float64, reason string) (api.BucketTake, error) {
	const op = "bucket take"
	var r api.BucketTake
	amount, err := amountOf(tokens)
	if err != nil {
		return api.BucketTake{}, &Error{Op: op, Kind: Refused, Err: err}
	}
	body := api.BucketChange{Key: key, Tokens: amount, Reason: reason}
	if err := c.amend(ctx, op, c.base.JoinPath("v1", "bucket", "take"), body, &r); err != nil {
		return api.BucketTake{}, err
	}
	return r, checkBucket(op, &r.After)
}

// ResetRule makes the buckets of a rule full, for all its keys. One call does a part of a large
// store, in seconds: the caller begins with an empty from, passes Next of the answer to the
// following call, and is done when Next is empty. The reason is required. After an error the
// reset may begin again. A rule that the policy does not have is a [Refused] error with status
// 404.
func (c *Client) ResetRule(ctx context.Context, rule, reason, from string) (api.RuleReset, error) {
	var r api.RuleReset
	err := c.amend(ctx, "rules reset", c.base.JoinPath("v1", "rules", "reset"), api.RuleChange{Rule: rule, Reason: reason, From: from}, &r)
	return r, err
}

// Activity returns what administrators did lately, the newest first: as one server
// remembers it, and of what was done to single buckets by their keys at any server that
// shares its store (see httpapi.Config.Audit).
func (c *Client) Activity(ctx context.Context) (api.Activities, error) {
	var a api.Activities
	err := c.send(ctx, "activity", http.MethodGet, c.base.JoinPath("v1", "activity"), nil, &a)
	return a, err
}

// amend asks for a change of buckets.
func (c *Client) amend(ctx context.Context, op string, to *url.URL, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return &Error{Op: op, Kind: Refused, Err: err}
	}
	return c.send(ctx, op, http.MethodPost, to, text, answer)
}

func checkBucket(op string, b *api.Bucket) error {
	if b.Key == "" || b.Limit == "" || b.Algorithm == "" {
		return &Error{Op: op, Kind: Garbled, Err: errors.New("the answer is not a bucket")}
	}
	return nil
}
