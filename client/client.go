// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/metehq/mete/api"
)

const (
	// DefaultTimeout is the timeout of a request if [New] gets no HTTP client.
	DefaultTimeout = 10 * time.Second

	// MaxResponseBytes bounds the body of a response. A longer body is a [KindInvalidResponse] error.
	MaxResponseBytes = 4 << 20
)

// A Decision is the server's response to a take or a peek.
type Decision = api.Decision

// Held is the server's response to a renewal.
type Held = api.Held

// A Client sends requests to one server. It is safe for concurrent use and needs no Close.
type Client struct {
	base  *url.URL
	http  *http.Client
	token string
}

// New returns a client of the server at baseURL, such as "http://127.0.0.1:8080". If httpClient is nil, the
// client uses its own with [DefaultTimeout].
func New(baseURL string, httpClient *http.Client) (*Client, error) {
	base, err := url.Parse(baseURL)
	if err != nil {
		var parsing *url.Error
		if errors.As(err, &parsing) {
			err = parsing.Err // without the URL, which may contain a password
		}
		return nil, fmt.Errorf("client: new: cannot parse the server URL: %w; use a URL such as http://127.0.0.1:8080", err)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("client: new: %q is not a server URL; use a URL such as http://127.0.0.1:8080", base.Redacted())
	}
	if base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("client: new: %q: a server URL must have no query and no fragment", base.Redacted())
	}
	if httpClient == nil {
		httpClient = &http.Client{Timeout: DefaultTimeout}
	}
	return &Client{base: base, http: httpClient}, nil
}

// Take spends the request's tokens, or is denied.
func (c *Client) Take(ctx context.Context, req Request) (Decision, error) {
	return c.decide(ctx, "take", req)
}

// Peek returns the decision that a take would get, and spends nothing.
func (c *Client) Peek(ctx context.Context, req Request) (Decision, error) {
	return c.decide(ctx, "peek", req)
}

// Refund returns the request's tokens. It needs the admin address of a server (see httpapi.Config.Admin). Other
// addresses return a [KindRefused] error.
func (c *Client) Refund(ctx context.Context, req Request) error {
	return c.post(ctx, "refund", req, new(struct{}))
}

// Reset fills every bucket of the request. It needs the admin address, like Refund. It ignores the request's cost
// and maximum wait.
func (c *Client) Reset(ctx context.Context, req Request) error {
	return c.post(ctx, "reset", req, new(struct{}))
}

// RenewSlots starts the leases of the slots of a request again. req is the request of a take, with its [Request.Slot]. If a slot
// has ended, another request may hold it: Held is then false.
func (c *Client) RenewSlots(ctx context.Context, req Request) (held Held, err error) {
	err = c.post(ctx, "slots/renew", req, &held)
	return held, err
}

// ReleaseSlots frees the slots of a request when it ends. req is as in RenewSlots. It can be called again after any error: a
// slot is released at most once.
func (c *Client) ReleaseSlots(ctx context.Context, req Request) error {
	return c.post(ctx, "slots/release", req, new(struct{}))
}

func (c *Client) decide(ctx context.Context, op string, req Request) (Decision, error) {
	var answer struct {
		Decision
		Allowed *bool `json:"allowed"` // shadows the Decision's field to detect its absence
	}
	if err := c.post(ctx, op, req, &answer); err != nil {
		return Decision{}, err
	}
	if answer.Allowed == nil {
		return Decision{}, &Error{Op: op, Kind: KindInvalidResponse, Err: errors.New("the response is not a decision")}
	}
	answer.Decision.Allowed = *answer.Allowed
	return answer.Decision, nil
}

func (c *Client) post(ctx context.Context, op string, req Request, answer any) error {
	body, err := json.Marshal(req)
	if err != nil {
		return &Error{Op: op, Kind: KindRefused, Err: err}
	}
	return c.send(ctx, op, http.MethodPost, c.base.JoinPath("v1", op), body, answer)
}

func (c *Client) send(ctx context.Context, op, method string, to *url.URL, body []byte, answer any) error {
	hreq, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(body))
	if err != nil {
		return &Error{Op: op, Kind: KindUnreachable, Err: err}
	}
	if body != nil {
		hreq.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		hreq.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(hreq)
	if err != nil {
		return &Error{Op: op, Kind: KindUnreachable, Err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBytes(op)+1))
	if err != nil {
		return &Error{Op: op, Kind: KindUnreachable, Status: resp.StatusCode, Err: err}
	}
	return decode(op, resp, text, answer)
}

func decode(op string, resp *http.Response, text []byte, answer any) error {
	garbled := func(reason string) error {
		return &Error{Op: op, Kind: KindInvalidResponse, Status: resp.StatusCode, Err: errors.New(reason)}
	}
	if most := maxBytes(op); int64(len(text)) > most {
		return garbled(fmt.Sprintf("the response is longer than %d bytes", most))
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch media {
	case "application/json":
		if err := json.Unmarshal(text, answer); err != nil {
			return garbled("the response cannot be parsed: " + err.Error())
		}
		return nil
	case "application/problem+json":
		var p api.Problem
		if err := json.Unmarshal(text, &p); err != nil {
			return garbled("the response cannot be parsed: " + err.Error())
		}
		kind := KindRefused
		if resp.StatusCode >= 500 {
			kind = KindUnavailable
		}
		return &Error{Op: op, Kind: kind, Status: resp.StatusCode, Problem: &p}
	}
	return garbled(fmt.Sprintf("got status %d and type %q: not a mete server", resp.StatusCode, media))
}
