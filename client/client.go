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
	// DefaultTimeout bounds a question where [New] is given no HTTP client.
	DefaultTimeout = 10 * time.Second

	// MaxAnswerBytes bounds the body of an answer; a longer one is a [Garbled]
	// error.
	MaxAnswerBytes = 4 << 20
)

// A Decision is the server's answer to a take or a peek.
type Decision = api.Decision

// A Client asks one server. It is safe for concurrent use, and needs no Close.
type Client struct {
	base  *url.URL
	http  *http.Client
	token string
}

// New returns a client of the server at baseURL, such as
// "http://127.0.0.1:8080". If httpClient is nil, the client makes one with
// [DefaultTimeout].
func New(baseURL string, httpClient *http.Client) (*Client, error) {
	base, err := url.Parse(baseURL)
	if err != nil {
		var parsing *url.Error
		if errors.As(err, &parsing) {
			err = parsing.Err // without the URL, which may hold a password
		}
		return nil, fmt.Errorf("client: new: the URL of the server is not understood: %w; write one such as http://127.0.0.1:8080", err)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("client: new: %q is not the URL of a server; write one such as http://127.0.0.1:8080", base.Redacted())
	}
	if base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("client: new: %q: the URL of a server has no query and no fragment", base.Redacted())
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

// Peek asks what a take would be answered, and spends nothing.
func (c *Client) Peek(ctx context.Context, req Request) (Decision, error) {
	return c.decide(ctx, "peek", req)
}

// Refund gives the request's tokens back. A server does that at its address for
// administrators alone (see httpapi.Config.Admin); others answer with a [Refused]
// error, whose Problem says so.
func (c *Client) Refund(ctx context.Context, req Request) error {
	return c.ask(ctx, "refund", req, new(struct{}))
}

// Reset makes every bucket that the request falls under full, at the address for
// administrators alone, as Refund. The request's cost and longest wait are of no
// account.
func (c *Client) Reset(ctx context.Context, req Request) error {
	return c.ask(ctx, "reset", req, new(struct{}))
}

func (c *Client) decide(ctx context.Context, op string, req Request) (Decision, error) {
	var answer struct {
		Decision
		Allowed *bool `json:"allowed"` // in place of the Decision's, to see whether it is there
	}
	if err := c.ask(ctx, op, req, &answer); err != nil {
		return Decision{}, err
	}
	if answer.Allowed == nil {
		return Decision{}, &Error{Op: op, Kind: Garbled, Err: errors.New("the answer is not a decision")}
	}
	answer.Decision.Allowed = *answer.Allowed
	return answer.Decision, nil
}

// ask sends one question and decodes its answer.
func (c *Client) ask(ctx context.Context, op string, req Request, answer any) error {
	body, err := json.Marshal(req)
	if err != nil {
		return &Error{Op: op, Kind: Refused, Err: err}
	}
	return c.send(ctx, op, http.MethodPost, c.base.JoinPath("v1", op), body, answer)
}

// send sends a question of any kind and decodes its answer.
func (c *Client) send(ctx context.Context, op, method string, to *url.URL, body []byte, answer any) error {
	hreq, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(body))
	if err != nil {
		return &Error{Op: op, Kind: Unreachable, Err: err}
	}
	if body != nil {
		hreq.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		hreq.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(hreq)
	if err != nil {
		return &Error{Op: op, Kind: Unreachable, Err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, longest(op)+1))
	if err != nil {
		return &Error{Op: op, Kind: Unreachable, Status: resp.StatusCode, Err: err}
	}
	return decode(op, resp, text, answer)
}

// decode tells answers from problems, and both from what something else than
// our server said.
func decode(op string, resp *http.Response, text []byte, answer any) error {
	garbled := func(reason string) error {
		return &Error{Op: op, Kind: Garbled, Status: resp.StatusCode, Err: errors.New(reason)}
	}
	if most := longest(op); int64(len(text)) > most {
		return garbled(fmt.Sprintf("the answer is longer than %d bytes", most))
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
		kind := Refused
		if resp.StatusCode >= 500 {
			kind = Unavailable
		}
		return &Error{Op: op, Kind: kind, Status: resp.StatusCode, Problem: &p}
	}
	return garbled(fmt.Sprintf("something answered with status %d and type %q, which is not a mete server", resp.StatusCode, media))
}
