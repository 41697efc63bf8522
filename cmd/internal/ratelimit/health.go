// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// pingTimeout bounds the call of a health check to the store. Kubernetes waits for one second by default.
const pingTimeout = 800 * time.Millisecond

var (
	errStopping = errors.New("the service is stopping")
	errNoDomain = errors.New("no domain is configured")
	errStore    = errors.New("the store does not answer")
)

// A healthCheck reports whether the service should receive calls.
type healthCheck struct {
	stopping   <-chan struct{}
	target     *target
	needDomain bool
	ping       func(context.Context) error // nil: the store is not checked
}

// check returns nil if the service is healthy.
func (h *healthCheck) check(ctx context.Context) error {
	select {
	case <-h.stopping:
		return errStopping
	default:
	}
	if h.needDomain && h.target.countDomains() == 0 {
		return errNoDomain
	}
	if h.ping == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if h.ping(ctx) != nil {
		return errStore
	}
	return nil
}

// ServeHTTP answers OK or status 500, as the original does.
func (h *healthCheck) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.check(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = io.WriteString(w, "OK")
}
