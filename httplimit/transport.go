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

// TransportConfig holds the settings of a [Transport]. In the zero TransportConfig every setting has its default.
type TransportConfig struct {
	// Base sends the requests. If nil, it is [http.DefaultTransport].
	Base http.RoundTripper

	// Key returns the key under which a server counts the request. Requests with the same key are paced together.
	// It must be safe for concurrent use. If nil, the key is scheme and host. A client with several API keys
	// returns them here.
	Key func(*http.Request) string

	// MaxWait bounds how long a request waits before it is sent, and before each retry. Zero means one minute. A
	// request with a longer known wait, or with an earlier deadline, fails immediately with an error that wraps
	// [mete.ErrDeadlineTooSoon].
	MaxWait time.Duration

	// MaxRetries bounds the retries of a request after 429 or 503 responses with a Retry-After. Zero means 2; a
	// negative value disables retries.
	MaxRetries int
}

const (
	defaultMaxWait    = time.Minute
	defaultMaxRetries = 2
)

// A Transport is an [http.RoundTripper] that obeys the rate limits that servers announce, for all clients in the
// process that share it:
//
//	client := &http.Client{Transport: httplimit.NewTransport(httplimit.TransportConfig{})}
//
// It reads Retry-After and the RateLimit fields of every dialect. It sends requests in order and spreads the
// quota evenly over the rest of the window, with bursts of up to 10%. The server thus rejects no request, and
// little quota is lost. Requests to servers that announce no limit are not delayed. Before the first response
// there is at most one request per second.
//
// A rejection with a Retry-After pauses all requests of its key for that time, plus a random tenth of it, up to
// one second. A rejection without a valid Retry-After pauses them for a second, and twice as long after each
// further rejection. If the server announces nothing else, one request then probes it, and the others follow as
// responses arrive.
//
// A rejected request is retried if it had a Retry-After and its body can be read again ([http.Request.GetBody]).
// It must also be unprocessed (429), or idempotent by its method or an Idempotency-Key. Without time or retries
// left, the caller gets the rejection as the server sent it.
//
// Servers are trusted within bounds: a server can pause a Transport for at most one hour before a request probes
// it. A Transport holds at most 1024 keys, and at most 4096 waiting requests per key. It is safe for concurrent
// use and starts no goroutine.
type Transport struct {
	base       http.RoundTripper
	key        func(*http.Request) string
	maxWait    time.Duration
	maxRetries int
	pacers     pacers
}

// NewTransport returns a transport with the given settings.
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

func origin(r *http.Request) string {
	if r.URL == nil {
		return "" // Base returns the error
	}
	return r.URL.Scheme + "://" + r.URL.Host
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	p := t.pacers.get(t.key(r))
	for sent := 0; ; sent++ {
		ticket, err := p.Wait(r.Context(), t.deadline(r.Context()), sent > 0)
		if err != nil {
			closeBody(r)
			return nil, waitError(r, err)
		}
		res, err := t.base.RoundTrip(r)
		if err != nil {
			p.RecordLoss(ticket)
			return nil, err
		}
		answer := parseResponse(res)
		p.RecordAnswer(ticket, answer)
		if !answer.Refused || !answer.HasWait || sent >= t.maxRetries || !t.inTime(r, p) {
			return res, nil
		}
		again, ok := retryRequest(r, res.StatusCode)
		if !ok {
			return res, nil
		}
		discardBody(res)
		r = again
	}
}

// CloseIdleConnections closes the idle connections of Base, if it supports that.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// deadline returns the time at which a request that starts to wait now must be sent.
func (t *Transport) deadline(ctx context.Context) time.Time {
	latest := time.Now().Add(t.maxWait)
	if d, ok := ctx.Deadline(); ok && d.Before(latest) {
		return d
	}
	return latest
}

func (t *Transport) inTime(r *http.Request, p *pacer.Pacer) bool {
	return time.Now().Add(p.PauseLeft()).Before(t.deadline(r.Context()))
}

func waitError(r *http.Request, err error) error {
	if errors.Is(err, pacer.ErrTooLate) {
		err = fmt.Errorf("%w: %w", mete.ErrDeadlineTooSoon, err)
	}
	return fmt.Errorf("httplimit: %s %s: %w", r.Method, origin(r), err)
}

func parseResponse(res *http.Response) pacer.Answer {
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

// discardBytes bounds how much of a rejection is read, so that its connection can be reused.
const discardBytes = 64 << 10

func discardBody(res *http.Response) {
	_, _ = io.CopyN(io.Discard, res.Body, discardBytes)
	_ = res.Body.Close()
}
