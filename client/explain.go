// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"

	"github.com/metehq/mete/api"
)

// MaxExplanationBytes bounds the body of an explanation, which covers every rule. A longer body is a [KindInvalidResponse]
// error.
const MaxExplanationBytes = 16 << 20

func maxBytes(op string) int64 {
	if op == "explain" || op == "traffic" {
		return MaxExplanationBytes
	}
	return MaxResponseBytes
}

// Explain returns the decision that a take would get now with an explanation per rule, and spends nothing. It
// needs the admin address, like [Client.Refund]. It ignores [Request.ID].
func (c *Client) Explain(ctx context.Context, req Request) (api.Explanation, error) {
	var e api.Explanation
	if err := c.post(ctx, "explain", req, &e); err != nil {
		return api.Explanation{}, err
	}
	if e.Why == "" {
		return api.Explanation{}, &Error{Op: "explain", Kind: KindInvalidResponse, Err: errors.New("the response is not an explanation")}
	}
	return e, nil
}
