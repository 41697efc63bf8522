// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"net/http"

	"github.com/metehq/mete/api"
)

// AI returns the tokens and the money that clients spent at language models. It needs the admin address of a server (see
// httpapi.Live.AI). The server masks keys for callers with the role read.
func (c *Client) AI(ctx context.Context) (api.AI, error) {
	const op = "ai"
	var answer api.AI
	if err := c.send(ctx, op, http.MethodGet, c.base.JoinPath("v1", op), nil, &answer); err != nil {
		return api.AI{}, err
	}
	if answer.At.IsZero() || answer.Since.IsZero() {
		return api.AI{}, &Error{Op: op, Kind: KindInvalidResponse, Err: errors.New("the response has no counts of language models")}
	}
	return answer, nil
}
