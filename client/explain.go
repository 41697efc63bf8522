// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"

	"github.com/metehq/mete/api"
)

// MaxExplanationBytes bounds the body of an explanation, which says something of
// every rule; a longer one is a [Garbled] error.
const MaxExplanationBytes = 16 << 20

// longest is how long an answer may be.
func longest(op string) int64 {
	if op == "explain" || op == "traffic" {
		return MaxExplanationBytes
	}
	return MaxAnswerBytes
}

// Explain asks what a take would be answered now, and why: rule by rule, spending
// nothing. A server answers that at its address for administrators alone, as
// [Client.Refund]. [Request.ID] has no part in it.
func (c *Client) Explain(ctx context.Context, req Request) (api.Explanation, error) {
	var e api.Explanation
	if err := c.ask(ctx, "explain", req, &e); err != nil {
		return api.Explanation{}, err
	}
	if e.Why == "" {
		return api.Explanation{}, &Error{Op: "explain", Kind: Garbled, Err: errors.New("the answer is not an explanation")}
	}
	return e, nil
}
