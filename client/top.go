// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/metehq/mete/api"
)

// A TopQuery says which keys [Client.Top] asks for. The zero TopQuery is about those
// that any rule denied.
type TopQuery struct {
	Rule   string        // "" for all
	Kind   string        // "denied", which is also "", "shadow" or "near"
	Limit  int           // how many; 0 for 20
	Window time.Duration // of how much time; 0 for as much as the server counts
}

// Top returns the keys that were denied most lately, or left little of a limit. A server
// tells it at its address for administrators alone (see httpapi.Config.Top), and shows
// keys masked to those who may only read.
func (c *Client) Top(ctx context.Context, q TopQuery) (api.Top, error) {
	const op = "top"
	values := url.Values{}
	if q.Rule != "" {
		values.Set("rule", q.Rule)
	}
	if q.Kind != "" {
		values.Set("kind", q.Kind)
	}
	if q.Limit != 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Window != 0 {
		values.Set("window", q.Window.String())
	}
	to := c.base.JoinPath("v1", op)
	to.RawQuery = values.Encode()
	var top api.Top
	if err := c.send(ctx, op, http.MethodGet, to, nil, &top); err != nil {
		return api.Top{}, err
	}
	if top.Kind == "" || top.At.IsZero() {
		return api.Top{}, &Error{Op: op, Kind: Garbled, Err: errors.New("the answer is not a list of keys")}
	}
	return top, nil
}
