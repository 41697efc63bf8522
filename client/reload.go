// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"

	"github.com/metehq/mete/api"
)

// Reload has the server read its policy again, at the address for administrators
// alone, and returns what is then in force. Where the new policy is broken, the old
// one stays, and the error, of the kind [Refused], says why.
func (c *Client) Reload(ctx context.Context) (api.Reload, error) {
	var answer api.Reload
	err := c.send(ctx, "reload", http.MethodPost, c.base.JoinPath("v1", "reload"), nil, &answer)
	return answer, err
}
