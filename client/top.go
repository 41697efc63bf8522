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

// A TopQuery selects keys for [Client.Top]. The zero TopQuery selects the keys that any rule denied.
type TopQuery struct {
	Rule   string        // "" for all rules
	Kind   string        // "denied" (also ""), "shadow" or "near"
	Limit  int           // number of keys; 0 means 20
	Window time.Duration // time range; 0 means the server's window
}

// Top returns the keys that were recently denied most, or were near a limit. It needs the admin address of a
// server (see httpapi.Config.Top). The server masks keys for callers with the role read.
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
		return api.Top{}, &Error{Op: op, Kind: KindInvalidResponse, Err: errors.New("the response is not a list of keys")}
	}
	return top, nil
}
