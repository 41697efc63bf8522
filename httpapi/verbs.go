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

// A question answers one request and appends the answer to buf.out. It returns the
// decision of a denial, and a problem in place of an answer.
type question func(ctx context.Context, buf *buffer, req *mete.Request) (*mete.Decision, *api.Problem)

// serveQuestions serves a question whose body is one request or a batch. The answer to a
// denial is 200, because HTTP clients retry a 429 on their own. With ?status=429, which
// parameters must name, a denial of one request sets the status and Retry-After.
func (a *API) serveQuestions(ask question, names ...string) func(http.ResponseWriter, *http.Request) *api.Problem {
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
		reqs, batch, p := buf.decoder.decode(buf.in, a.longest)
		switch {
		case p != nil:
			return p
		case batch && wantStatus:
			return api.NewProblem(http.StatusBadRequest, "the answer to a batch has no status of its own; remove the parameter status, or send one request")
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

// statusParameter reports whether the caller asks for the status of a denial.
func statusParameter(r *http.Request, names []string) (bool, *api.Problem) {
	if r.URL.RawQuery == "" {
		return false, nil
	}
	query, p := parameters(r, names...)
	switch {
	case p != nil:
		return false, p
	case !query.Has("status"):
		return false, nil
	case query.Get("status") != "429":
		return false, api.NewProblem(http.StatusBadRequest, fmt.Sprintf("status is %.40q; write status=429 for the status 429 and Retry-After on a denial, or remove it", query.Get("status")))
	}
	return true, nil
}

func (a *API) take(ctx context.Context, buf *buffer, req *mete.Request) (*mete.Decision, *api.Problem) {
	d, err := a.lim.Take(ctx, *req)
	return a.decided(buf, req, &d, err)
}

func (a *API) peek(ctx context.Context, buf *buffer, req *mete.Request) (*mete.Decision, *api.Problem) {
	d, err := a.lim.Peek(ctx, *req)
	return a.decided(buf, req, &d, err)
}

func (a *API) refund(ctx context.Context, buf *buffer, req *mete.Request) (*mete.Decision, *api.Problem) {
	return buf.done(a.lim.Refund(ctx, *req))
}

func (a *API) reset(ctx context.Context, buf *buffer, req *mete.Request) (*mete.Decision, *api.Problem) {
	return buf.done(a.lim.Reset(ctx, *req))
}

func (a *API) decided(buf *buffer, req *mete.Request, d *mete.Decision, err error) (*mete.Decision, *api.Problem) {
	if err != nil {
		return nil, errorProblem(err)
	}
	x := decisionOf(d, buf.limits[:0])
	buf.limits = x.Limits
	x.UnknownAttributes = a.unknown(req)
	buf.out = x.Append(buf.out)
	if d.Allowed {
		return nil, nil
	}
	denied := *d // only a denial is worth an allocation
	return &denied, nil
}

func (b *buffer) done(err error) (*mete.Decision, *api.Problem) {
	if err != nil {
		return nil, errorProblem(err)
	}
	b.out = append(b.out, "{}"...)
	return nil, nil
}

// deniedStatus returns the HTTP status of a denial: that of the other front doors, except
// for a request that lacks an attribute. A 403 would say here that the caller may not ask.
func deniedStatus(d *mete.Decision) int {
	if code := ratelimitfields.Status(d); code != http.StatusForbidden {
		return code
	}
	return http.StatusTooManyRequests
}

// errorProblem says why a request has no answer. What the store said stays here:
// it may name hosts.
func errorProblem(err error) *api.Problem {
	var store *mete.StoreError
	switch {
	case errors.Is(err, mete.ErrCost):
		return api.NewProblem(http.StatusBadRequest, "the cost is out of range; send a smaller one")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return api.NewProblem(http.StatusServiceUnavailable, "there was no time left to decide; tokens may have been spent")
	case errors.As(err, &store) && store.Spent == mete.NotSpent:
		return api.NewProblem(http.StatusServiceUnavailable, "the store cannot be reached and nothing was changed; try again later")
	}
	return api.NewProblem(http.StatusServiceUnavailable, "the store did not answer, and it may have changed the bucket or not; peek before trying again")
}
