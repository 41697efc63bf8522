// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/pacer"
	"github.com/metehq/mete/internal/ratelimitfields"
)

// TransportConfig are a [Transport]'s settings. In the zero TransportConfig
// each has its default.
type TransportConfig struct {
	// Base sends the requests. If nil, [http.DefaultTransport].
	Base http.RoundTripper

	// Key names what a server counts a request for: requests with the same key
	// are paced together. It must be safe for concurrent use. If nil, it is the
	// scheme and the host. A client with several API keys names them here.
	Key func(*http.Request) string

	// MaxWait is the longest that a request waits before it is sent, and again
	// before each retry. If zero, a minute. One that would have to wait longer,
	// or longer than the deadline of its context, fails at once where that is
	// known, with an error that wraps [mete.ErrDeadlineTooSoon].
	MaxWait time.Duration

	// MaxRetries is how often a request is sent again that was answered with 429
	// or 503 and told when to come back. If zero, 2; negative is never.
	MaxRetries int
}

const (
	defaultMaxWait    = time.Minute
	defaultMaxRetries = 2
)

// A Transport is a [http.RoundTripper] that keeps to what servers say of their
// limits, for all clients of the process that share it:
//
//	client := &http.Client{Transport: httplimit.NewTransport(httplimit.TransportConfig{})}
//
// It reads Retry-After and the RateLimit fields of every dialect. Requests are
// sent in the order in which they come, at a pace that spends what the server
// says is left evenly over the time it has to last, so that none is refused and
// little is left unused. A tenth of it may go at once. Nothing is delayed for a
// server that announces nothing, except that until the first answer there is no
// more than one request a second.
//
// A refusal with Retry-After stops all requests of its key until then, and a
// tenth of that, but at most a second, longer, at random; a refusal without, or
// with one that has passed, for a second, and for twice as long each time. If the
// server announces nothing else, one request then goes first, and the others as
// it and they are answered. The refused request is sent again
// if it was told when, its body can be had again ([http.Request.GetBody]), and
// it was not processed (429) or is idempotent by its method or an
// Idempotency-Key. If there is no time or no retry left, its refusal is
// returned as the server sent it.
//
// What a server says is believed within bounds: it can stop a Transport for an
// hour at most before one request goes to see. A Transport keeps at most 1024
// keys and lets at most 4096 requests wait for each. It is safe for concurrent
// use and starts no goroutine.
type Transport struct {
	base       http.RoundTripper
	key        func(*http.Request) string
	maxWait    time.Duration
	maxRetries int
	pacers     pacers
}

// NewTransport returns a transport with these settings.
func NewTransport(config TransportConfig) *Transport {
	t := &Transport{base: config.Base, key: config.Key, maxWait: config.MaxWait, maxRetries: config.MaxRetries}
	if t.base == nil {
		t.base = http.DefaultTransport
	}
	if t.key == nil {
		t.key = origin
	}
	if t.maxWait <= 0 {
		t.maxWait = defaultMaxWait
	}
	if t.maxRetries == 0 {
		t.maxRetries = defaultMaxRetries
	}
	return t
}

// origin is whom a request is sent to.
func origin(r *http.Request) string {
	if r.URL == nil {
		return "" // Base knows what to say of it
	}
	return r.URL.Scheme + "://" + r.URL.Host
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	p := t.pacers.of(t.key(r))
	for sent := 0; ; sent++ {
		ticket, err := p.Wait(r.Context(), t.deadline(r.Context()), sent > 0)
		if err != nil {
			closeBody(r)
			return nil, waitError(r, err)
		}
		res, err := t.base.RoundTrip(r)
		if err != nil {
			p.Lost(ticket)
			return nil, err
		}
		answer := read(res)
		p.Answered(ticket, answer)
		if !answer.Refused || !answer.HasWait || sent >= t.maxRetries || !t.inTime(r, p) {
			return res, nil
		}
		again, ok := repeat(r, res.StatusCode)
		if !ok {
			return res, nil
		}
		discard(res)
		r = again
	}
}

// CloseIdleConnections closes the connections that Base keeps and are not in
// use, if it can.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// deadline is when a request that begins to wait now must have been sent.
func (t *Transport) deadline(ctx context.Context) time.Time {
	latest := time.Now().Add(t.maxWait)
	if d, ok := ctx.Deadline(); ok && d.Before(latest) {
		return d
	}
	return latest
}

// inTime reports whether r could be sent again after the pause that is in force.
func (t *Transport) inTime(r *http.Request, p *pacer.Pacer) bool {
	return time.Now().Add(p.PausedFor()).Before(t.deadline(r.Context()))
}

// waitError says why r was not sent.
func waitError(r *http.Request, err error) error {
	if errors.Is(err, pacer.ErrTooLate) {
		err = fmt.Errorf("%w: %w", mete.ErrDeadlineTooSoon, err)
	}
	return fmt.Errorf("httplimit: %s %s: %w", r.Method, origin(r), err)
}

// read returns what a response says of the server's limits.
func read(res *http.Response) pacer.Answer {
	now := time.Now()
	a := pacer.Answer{
		Refused:   res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable,
		Announced: ratelimitfields.Read(res.Header, now),
	}
	if a.Refused {
		a.Wait, a.HasWait = ratelimitfields.RetryAfter(res.Header, now)
	}
	return a
}

// discardBytes is how much of a refusal is read, to use its connection again.
const discardBytes = 64 << 10

func discard(res *http.Response) {
	_, _ = io.CopyN(io.Discard, res.Body, discardBytes)
	_ = res.Body.Close()
}
