// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/ratelimitfields"
)

var errUnavailable = errors.New("no upstream server is up")

// errDraining means that a connection is not upgraded because [Proxy.Drain] was called.
var errDraining = errors.New("no new upgrades: the proxy is draining")

var (
	noRoute         = newProblem(http.StatusNotFound, "No route matches this host and path.")
	tooLarge        = newProblem(http.StatusRequestEntityTooLarge, "The request body is too large.")
	stalled         = newProblem(http.StatusRequestTimeout, "The request body stalled for too long.")
	incomplete      = newProblem(http.StatusBadRequest, "The request body is malformed or incomplete.")
	unavailable     = newProblem(http.StatusServiceUnavailable, "No upstream server is available. This is not a rate limit.")
	draining        = newProblem(http.StatusServiceUnavailable, "The server is shutting down and accepts no new upgraded connections.")
	requestCanceled = newProblem(http.StatusBadGateway, "The request was canceled.")
	upstreamTimeout = newProblem(http.StatusGatewayTimeout, "The upstream server did not respond in time.")
	unreachable     = newProblem(http.StatusBadGateway, "The upstream server could not be reached, or closed the connection.")
)

func newProblem(status int, detail string) *api.Problem {
	return &api.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

func (e *exchange) fail(err error) {
	e.beginResponse()
	p := e.problemOf(err)
	if e.sent.Load() && e.body.failure() == nil { // no server processes a part of a body
		httplimit.KeepCharge(e.w)
	}
	if p.Status == http.StatusServiceUnavailable {
		e.w.Header()["Retry-After"] = []string{strconv.FormatInt(max(1, seconds(e.upstream.retryAfter())), 10)}
	}
	e.proxy.limit.WriteProblem(e.w, e.in, p)
}

func (e *exchange) problemOf(err error) *api.Problem {
	broken := e.body.failure()
	if broken != nil {
		err = broken
	}
	_, tooLong := errors.AsType[*http.MaxBytesError](err)
	timeout, isNet := errors.AsType[net.Error](err)
	ended := e.in.Context().Err()
	switch {
	case tooLong:
		return tooLarge
	case errors.Is(err, errUnavailable):
		return unavailable
	case errors.Is(err, errDraining):
		return draining
	case broken != nil && isStall(broken): // net/http also cancels the request
		return stalled
	case errors.Is(ended, context.Canceled):
		// The client is gone and does not see this, unless the server cancels its own requests.
		return requestCanceled
	case broken != nil:
		if detail := httpfacts.BodyError(broken); detail != "" {
			return ratelimitfields.NewAmbiguousProblem(detail)
		}
		return incomplete
	}
	e.proxy.config.OnError(e.out, err)
	if ended != nil || isNet && timeout.Timeout() {
		return upstreamTimeout
	}
	return unreachable
}

func seconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }
