// SPDX-License-Identifier: Apache-2.0

package client

// WithToken returns a client of the same server that sends a token with every
// question, as the address for administrators wants it. An empty token is none. It goes
// nowhere but to that server, and those of its domain that it redirects to; without
// TLS, to all who can listen. No error has it in its text.
//
// Where the token is missing or nobody's, the error is of the kind [Refused] with
// status 401, and with 403 where its role is too low: see httpapi.Role.
func (c *Client) WithToken(token string) *Client {
	with := *c
	with.token = token
	return &with
}
