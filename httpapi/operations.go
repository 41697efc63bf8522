// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/ratelimitfields"
)

// A requestFunc handles one request and appends its response to buf.out. It returns the decision for a denial, and
// a problem if there is no response.
type requestFunc func(ctx context.Context, buf *buffer, req *mete.Request) (*mete.Decision, *api.Problem)

// serveRequests serves a requestFunc for one request or a batch. A denial gets a 200, because HTTP clients retry a
// 429 on their own. With ?status=429, if names contains status, a single denial sets the status and Retry-After.
func (a *API) serveRequests(ask requestFunc, names ...string) func(http.ResponseWriter, *http.Request) *api.Problem {
	return func(w http.ResponseWriter, r *http.Request) *api.Problem {
		if p := a.checkSender(w, r); p != nil {
			return p
		}
		wantStatus, p := statusParameter(r, names)
		if p != nil {
			return p
		}
		buf := buffers.Get().(*buffer)
		defer buf.release()
		if p := buf.readBody(w, r); p != nil {
			return p
		}
		reqs, batch, p := buf.decoder.decode(buf.in, a.maxWait)
		switch {
		case p != nil:
			return p
		case batch && wantStatus:
			return api.NewProblem(http.StatusBadRequest, "a batch has no single status; remove the parameter status, or send one request")
		case batch:
			buf.out = append(buf.out, `{"responses":[`...)
			for i := range reqs {
				if i > 0 {
					buf.out = append(buf.out, ',')
				}
				if _, p := ask(r.Context(), buf, &reqs[i]); p != nil {
					buf.out = p.Append(buf.out)
				}
			}
			buf.out = append(buf.out, "]}"...)
			buf.serve(w, http.StatusOK)
			return nil
		}
		denied, p := ask(r.Context(), buf, &reqs[0])
		if p != nil {
			return p
		}
		code := http.StatusOK
		if denied != nil && wantStatus {
			code = deniedStatus(denied)
			a.denial.Header(w.Header(), denied)
		}
		buf.serve(w, code)
		return nil
	}
}

func statusParameter(r *http.Request, names []string) (bool, *api.Problem) {
	if r.URL.RawQuery == "" {
		return false, nil
	}
	query, p := parseQuery(r, names...)
	switch {
	case p != nil:
		return false, p
	case !query.Has("status"):
		return false, nil
	case query.Get("status") != "429":
		return false, api.NewProblem(http.StatusBadRequest, fmt.Sprintf("status is %.40q; use status=429 to get a denial as 429 with Retry-After, or remove it", query.Get("status")))
	}
	return true, nil
}

func (a *API) take(ctx context.Context, buf *buffer, req *mete.Request) (*mete.Decision, *api.Problem) {
	d, err := a.lim.Take(ctx, *req)
	return a.appendDecision(buf, req, &d, err)
}

func (a *API) peek(ctx context.Context, buf *buffer, req *mete.Request) (*mete.Decision, *api.Problem) {
	d, err := a.lim.Peek(ctx, *req)
	return a.appendDecision(buf, req, &d, err)
}

func (a *API) refund(ctx context.Context, buf *buffer, req *mete.Request) (*mete.Decision, *api.Problem) {
	return buf.appendEmpty(a.lim.Refund(ctx, *req))
}

func (a *API) reset(ctx context.Context, buf *buffer, req *mete.Request) (*mete.Decision, *api.Problem) {
	return buf.appendEmpty(a.lim.Reset(ctx, *req))
}

func (a *API) appendDecision(buf *buffer, req *mete.Request, d *mete.Decision, err error) (*mete.Decision, *api.Problem) {
	if err != nil {
		return nil, errorProblem(err)
	}
	x := decisionOf(d, buf.limits[:0])
	buf.limits = x.Limits
	x.UnknownAttributes = a.unknownAttributes(req)
	buf.out = x.Append(buf.out)
	if d.Allowed {
		return nil, nil
	}
	denied := *d // allocate only for a denial
	return &denied, nil
}

func (b *buffer) appendEmpty(err error) (*mete.Decision, *api.Problem) {
	if err != nil {
		return nil, errorProblem(err)
	}
	b.out = append(b.out, "{}"...)
	return nil, nil
}

// deniedStatus returns the HTTP status of a denial. It is the status of the other adapters, except for a missing
// attribute: a 403 would mean here that the caller lacks permission.
func deniedStatus(d *mete.Decision) int {
	if code := ratelimitfields.Status(d); code != http.StatusForbidden {
		return code
	}
	return http.StatusTooManyRequests
}

// errorProblem converts an error of the limiter. It hides the store's error, which may contain host names.
func errorProblem(err error) *api.Problem {
	var store *mete.StoreError
	switch {
	case errors.Is(err, mete.ErrCost):
		return api.NewProblem(http.StatusBadRequest, "the cost is out of range; send a smaller one")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return api.NewProblem(http.StatusServiceUnavailable, "the request timed out; tokens may have been spent")
	case errors.As(err, &store) && store.Spent == mete.NotSpent:
		return api.NewProblem(http.StatusServiceUnavailable, "the store is unavailable and nothing was changed; try again later")
	}
	return api.NewProblem(http.StatusServiceUnavailable, "the store did not respond, and the bucket may or may not have changed; peek before you retry")
}
