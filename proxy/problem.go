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
	"github.com/metehq/mete/internal/ratelimitfields"
)

// errUnavailable is why a request was sent to no server at all.
var errUnavailable = errors.New("no server is up")

// errEnding is why a connection is not upgraded after [Proxy.Drain].
var errEnding = errors.New("no more connections are upgraded")

var (
	noRoute     = problem(http.StatusNotFound, "Nothing is served under this host and path.")
	tooLarge    = problem(http.StatusRequestEntityTooLarge, "The body of the request is too long.")
	stalled     = problem(http.StatusRequestTimeout, "The body of the request did not go on in time.")
	incomplete  = problem(http.StatusBadRequest, "The body of the request is broken, or broke off.")
	unavailable = problem(http.StatusServiceUnavailable, "No upstream server is up. This is no limit of yours.")
	ending      = problem(http.StatusServiceUnavailable, "The server is ending and opens no more connections of this kind.")
	givenUp     = problem(http.StatusBadGateway, "The request was given up.")
	late        = problem(http.StatusGatewayTimeout, "The upstream server did not answer in time.")
	unreachable = problem(http.StatusBadGateway, "The upstream server could not be reached, or broke off.")
)

// problem returns the problem of a status. It names no address.
func problem(status int, detail string) *api.Problem {
	return &api.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

// fail answers a request for which there is no answer of the upstream.
func (e *exchange) fail(err error) {
	e.begin()
	p := e.problemOf(err)
	if p.Status == http.StatusServiceUnavailable {
		e.w.Header()["Retry-After"] = []string{strconv.FormatInt(max(1, seconds(e.upstream.retryAfter())), 10)}
	}
	ratelimitfields.Write(e.w, e.in, p)
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
	case errors.Is(err, errEnding):
		return ending
	case broken != nil && isStall(broken): // by which net/http ends the request, too
		return stalled
	case errors.Is(ended, context.Canceled):
		// The client has gone and sees nothing of this, unless it is the server
		// that ends its requests.
		return givenUp
	case broken != nil:
		return incomplete
	}
	e.proxy.config.OnError(e.out, err)
	if ended != nil || isNet && timeout.Timeout() {
		return late
	}
	return unreachable
}

func seconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }
