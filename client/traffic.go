// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/metehq/mete/api"
)

// Traffic returns the decisions per rule in a window of 1 s to 1 min; 0 means one minute. It needs the admin
// address of a server (see httpapi.Live).
func (c *Client) Traffic(ctx context.Context, window time.Duration) (api.Traffic, error) {
	const op = "traffic"
	to := c.base.JoinPath("v1", op)
	if window != 0 {
		to.RawQuery = url.Values{"window": {window.String()}}.Encode()
	}
	var t api.Traffic
	if err := c.send(ctx, op, http.MethodGet, to, nil, &t); err != nil {
		return api.Traffic{}, err
	}
	if t.Window == 0 {
		return api.Traffic{}, &Error{Op: op, Kind: KindInvalidResponse, Err: errors.New("the response is not traffic data")}
	}
	return t, nil
}
