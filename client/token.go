// SPDX-License-Identifier: Apache-2.0

package client

// WithToken returns a client of the same server that sends a token with every request, as the admin address
// requires. An empty token sends none. The token goes only to that server and to redirects within its domain, and
// without TLS to every eavesdropper. It never appears in errors.
//
// A missing or unknown token causes a [KindRefused] error with status 401. A role that is too low causes status
// 403: see httpapi.Role.
func (c *Client) WithToken(token string) *Client {
	with := *c
	with.token = token
	return &with
}
