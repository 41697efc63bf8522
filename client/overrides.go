// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/metehq/mete/api"
)

// Overrides returns the overrides and the last entries of the audit log. It needs the admin address of a server
// (see httpapi.Config.Overrides), as do PutOverride and RemoveOverride.
func (c *Client) Overrides(ctx context.Context, audit int) (api.Overrides, error) {
	to := c.base.JoinPath("v1", "overrides")
	to.RawQuery = url.Values{"audit": {strconv.Itoa(audit)}}.Encode()
	var answer api.Overrides
	const op = "overrides"
	if err := c.send(ctx, op, http.MethodGet, to, nil, &answer); err != nil {
		return api.Overrides{}, err
	}
	if answer.Overrides == nil {
		return api.Overrides{}, &Error{Op: op, Kind: KindInvalidResponse, Err: errors.New("the response is not a list of overrides")}
	}
	return answer, nil
}

// PutOverride creates or replaces an override and returns its state. Errors in the override are in the Problem of
// a [KindRefused] error.
func (c *Client) PutOverride(ctx context.Context, o api.Override) (api.OverrideStatus, error) {
	const op = "put override"
	body, err := json.Marshal(o)
	if err != nil {
		return api.OverrideStatus{}, &Error{Op: op, Kind: KindRefused, Err: err}
	}
	return c.putOverride(ctx, op, body)
}

// PutOverrideJSON is PutOverride for an override in JSON.
func (c *Client) PutOverrideJSON(ctx context.Context, o json.RawMessage) (api.OverrideStatus, error) {
	return c.putOverride(ctx, "put override", o)
}

// PutLocalOverrideJSON creates an override on this server only, for at most one hour. It works while the server's
// store is down.
func (c *Client) PutLocalOverrideJSON(ctx context.Context, o json.RawMessage) (api.OverrideStatus, error) {
	return c.putOverride(ctx, "put local override", o, "local", "true")
}

func (c *Client) putOverride(ctx context.Context, op string, body []byte, parameter ...string) (made api.OverrideStatus, err error) {
	to := c.base.JoinPath("v1", "overrides")
	if len(parameter) == 2 {
		to.RawQuery = url.Values{parameter[0]: {parameter[1]}}.Encode()
	}
	if err := c.send(ctx, op, http.MethodPut, to, body, &made); err != nil {
		return api.OverrideStatus{}, err
	}
	if made.ID == "" {
		return api.OverrideStatus{}, &Error{Op: op, Kind: KindInvalidResponse, Err: errors.New("the response is not an override")}
	}
	return made, nil
}

// RemoveOverride ends an override that was created at run time. The author and the reason are required.
func (c *Client) RemoveOverride(ctx context.Context, id, author, reason string) error {
	to := c.base.JoinPath("v1", "overrides", url.PathEscape(id))
	to.RawQuery = url.Values{"author": {author}, "reason": {reason}}.Encode()
	return c.send(ctx, "remove override", http.MethodDelete, to, nil, new(struct{}))
}
