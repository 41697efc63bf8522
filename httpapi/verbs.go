// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/ratelimitfields"
)

// A question answers one request and appends the body of the answer to b.
type question func(ctx context.Context, b []byte, req mete.Request) answer

// An answer is what a question comes to.
type answer struct {
	body    []byte         // b and, unless there is a problem, what was appended
	denied  *mete.Decision // nil unless the request was denied
	problem *Problem       // nil unless nothing was decided or done
}

// questions serves a question to which the body holds one request or a batch of
// them.
func (a *API) questions(ask question) func(http.ResponseWriter, *http.Request) *Problem {
	return func(w http.ResponseWriter, r *http.Request) *Problem {
		if p := a.checkSender(w, r); p != nil {
			return p
		}
		buf := buffers.Get().(*buffer)
		defer buf.release()
		if p := buf.readBody(w, r); p != nil {
			return p
		}
		reqs, batch, p := buf.decoder.decode(buf.in, a.longest)
		if p != nil {
			return p
		}
		code := http.StatusOK
		if batch {
			buf.out = appendBatch(r.Context(), buf.out, reqs, ask)
		} else {
			single := ask(r.Context(), buf.out, reqs[0])
			if buf.out = single.body; single.problem != nil {
				return single.problem
			}
			if single.denied != nil {
				code = status(single.denied)
				a.denial.Header(w.Header(), single.denied)
			}
		}
		buf.serve(w, code)
		return nil
	}
}

// appendBatch asks in order. The answers have the bodies that the requests
// alone would have been answered with.
func appendBatch(ctx context.Context, b []byte, reqs []mete.Request, ask question) []byte {
	b = append(b, `{"responses":[`...)
	for i, req := range reqs {
		if i > 0 {
			b = append(b, ',')
		}
		one := ask(ctx, b, req)
		if b = one.body; one.problem != nil {
			b = one.problem.append(b)
		}
	}
	return append(b, "]}"...)
}

func (a *API) take(ctx context.Context, b []byte, req mete.Request) answer {
	d, err := a.lim.Take(ctx, req)
	return a.decided(b, &req, d, err)
}

func (a *API) peek(ctx context.Context, b []byte, req mete.Request) answer {
	d, err := a.lim.Peek(ctx, req)
	return a.decided(b, &req, d, err)
}

func (a *API) refund(ctx context.Context, b []byte, req mete.Request) answer {
	return done(b, a.lim.Refund(ctx, req))
}

func (a *API) reset(ctx context.Context, b []byte, req mete.Request) answer {
	return done(b, a.lim.Reset(ctx, req))
}

func (a *API) decided(b []byte, req *mete.Request, d mete.Decision, err error) answer {
	if err != nil {
		return answer{body: b, problem: errorProblem(err)}
	}
	one := answer{body: appendUnknown(appendDecision(b, &d), a.unknown(req))}
	if !d.Allowed {
		denied := d // only a denial is worth an allocation
		one.denied = &denied
	}
	return one
}

func done(b []byte, err error) answer {
	if err != nil {
		return answer{body: b, problem: errorProblem(err)}
	}
	return answer{body: append(b, "{}"...)}
}

// status is the HTTP status of a decision: that of the other doors, but for a
// request that lacks an attribute. Here a 403 would say that the caller may not
// ask; it may, and is told the answer.
func status(d *mete.Decision) int {
	if code := ratelimitfields.Status(d); code != http.StatusForbidden {
		return code
	}
	return http.StatusTooManyRequests
}

// errorProblem says why a request has no answer. What the store said stays here:
// it may name hosts.
func errorProblem(err error) *Problem {
	var store *mete.StoreError
	switch {
	case errors.Is(err, mete.ErrCost):
		return problem(http.StatusBadRequest, "the cost is out of range; send a smaller one")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return problem(http.StatusServiceUnavailable, "there was no time left to decide; tokens may have been spent")
	case errors.As(err, &store) && store.Spent == mete.NotSpent:
		return problem(http.StatusServiceUnavailable, "the store cannot be reached and nothing was changed; try again later")
	}
	return problem(http.StatusServiceUnavailable, "the store did not answer, and it may have changed the bucket or not; peek before trying again")
}
