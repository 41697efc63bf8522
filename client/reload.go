// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"

	"github.com/metehq/mete/api"
)

// Reload makes the server reload its policy and returns the active policy. It needs the admin address. If the new
// policy is invalid, the old one remains active, and the [KindRefused] error contains the reason.
func (c *Client) Reload(ctx context.Context) (api.Reload, error) {
	var answer api.Reload
	err := c.send(ctx, "reload", http.MethodPost, c.base.JoinPath("v1", "reload"), nil, &answer)
	return answer, err
}
