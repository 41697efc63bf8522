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

// Bucket returns the state of the bucket with the given key. The key has the form of [Client.Top] and may be
// masked. It needs the admin address of a server (see httpapi.Config.Admin). An unknown key is a [KindRefused]
// error with status 404.
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

// ResetBucket fills the bucket with the given key and returns the tokens that it lacked. The reason is required
// for the audit log.
func (c *Client) ResetBucket(ctx context.Context, key, reason string) (api.BucketReset, error) {
	const op = "bucket reset"
	var r api.BucketReset
	body := api.BucketChange{Key: key, Reason: reason}
	if err := c.change(ctx, op, c.base.JoinPath("v1", "bucket", "reset"), body, &r); err != nil {
		return api.BucketReset{}, err
	}
	return r, checkBucket(op, &r.Before)
}

// TakeBucket takes up to the given number of tokens from the bucket with the given key. It takes only available
// tokens. It can undo a reset if the tokens are unspent. The reason may be empty.
func (c *Client) TakeBucket(ctx context.Context, key string, tokens float64, reason string) (api.BucketTake, error) {
	const op = "bucket take"
	var r api.BucketTake
	amount, err := amountOf(tokens)
	if err != nil {
		return api.BucketTake{}, &Error{Op: op, Kind: KindRefused, Err: err}
	}
	body := api.BucketChange{Key: key, Tokens: amount, Reason: reason}
	if err := c.change(ctx, op, c.base.JoinPath("v1", "bucket", "take"), body, &r); err != nil {
		return api.BucketTake{}, err
	}
	return r, checkBucket(op, &r.After)
}

// ResetRule fills the buckets of a rule for all its keys. In a large store, one call handles a part. Start with
// an empty from, pass Next of each result to the following call, and stop when Next is empty. The reason is
// required. After an error, you can start again. An unknown rule is a [KindRefused] error with status 404.
func (c *Client) ResetRule(ctx context.Context, rule, reason, from string) (api.RuleReset, error) {
	var r api.RuleReset
	err := c.change(ctx, "rules reset", c.base.JoinPath("v1", "rules", "reset"), api.RuleChange{Rule: rule, Reason: reason, From: from}, &r)
	return r, err
}

// Activity returns recent changes by administrators, newest first. It covers all changes on this server, and
// changes to single buckets on any server that shares its store: see httpapi.Config.Audit.
func (c *Client) Activity(ctx context.Context) (api.Activities, error) {
	var a api.Activities
	err := c.send(ctx, "activity", http.MethodGet, c.base.JoinPath("v1", "activity"), nil, &a)
	return a, err
}

func (c *Client) change(ctx context.Context, op string, to *url.URL, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return &Error{Op: op, Kind: KindRefused, Err: err}
	}
	return c.send(ctx, op, http.MethodPost, to, text, answer)
}

func checkBucket(op string, b *api.Bucket) error {
	if b.Key == "" || b.Limit == "" || b.Algorithm == "" {
		return &Error{Op: op, Kind: KindInvalidResponse, Err: errors.New("the response is not a bucket")}
	}
	return nil
}
