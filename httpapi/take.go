// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"sync"

	"github.com/metehq/mete"
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
		if p := a.checkSender(r); p != nil {
			return p
		}
		buf := buffers.Get().(*buffer)
		defer buf.release()
		if p := buf.readBody(w, r); p != nil {
			return p
		}
		reqs, batch, p := decode(buf.in, a.maxBatch)
		if p != nil {
			return p
		}
		status := http.StatusOK
		if batch {
			buf.out = appendBatch(r.Context(), buf.out, reqs, ask)
		} else {
			single := ask(r.Context(), buf.out, reqs[0])
			if buf.out = single.body; single.problem != nil {
				return single.problem
			}
			if single.denied != nil {
				status = denialStatus(single.denied)
				a.denial.Header(w.Header(), single.denied)
			}
		}
		buf.serve(w, status)
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
	return decided(b, d, err)
}

func (a *API) peek(ctx context.Context, b []byte, req mete.Request) answer {
	d, err := a.lim.Peek(ctx, req)
	return decided(b, d, err)
}

func (a *API) refund(ctx context.Context, b []byte, req mete.Request) answer {
	return done(b, a.lim.Refund(ctx, req))
}

func (a *API) reset(ctx context.Context, b []byte, req mete.Request) answer {
	return done(b, a.lim.Reset(ctx, req))
}

func decided(b []byte, d mete.Decision, err error) answer {
	if err != nil {
		return answer{body: b, problem: errorProblem(err)}
	}
	one := answer{body: appendDecision(b, &d)}
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

// denialStatus is the HTTP status of a denial. A store that cannot answer is
// not the fault of the client, and no reason to tell it to slow down.
func denialStatus(d *mete.Decision) int {
	if d.Degraded {
		return http.StatusServiceUnavailable
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

// checkSender refuses what a program that means this API does not send. Without
// it, any page in a browser that can reach the server could spend tokens.
func (a *API) checkSender(r *http.Request) *Problem {
	if err := a.browsers.Check(r); err != nil {
		return problem(http.StatusForbidden, "pages of other origins cannot use this API; call it from a server")
	}
	sent := r.Header.Get("Content-Type")
	if sent == "" || sent == "application/json" {
		return nil
	}
	if media, _, err := mime.ParseMediaType(sent); err != nil || media != "application/json" {
		return problem(http.StatusUnsupportedMediaType, "the body must be JSON; send it with Content-Type: application/json")
	}
	return nil
}

// A buffer holds what is read and written for one request.
type buffer struct{ in, out []byte }

var buffers = sync.Pool{New: func() any { return &buffer{in: make([]byte, 0, 1<<10), out: make([]byte, 0, 1<<10)} }}

func (b *buffer) release() {
	b.in, b.out = b.in[:0], b.out[:0]
	buffers.Put(b)
}

// readBody reads the body of r, and not one that is too long.
func (b *buffer) readBody(w http.ResponseWriter, r *http.Request) *Problem {
	const tooLong = "the body is longer than 64 KiB; send a smaller batch, and no long values"
	if r.ContentLength > MaxBodyBytes {
		w.Header()["Connection"] = []string{"close"} // rather than to read it all
		return problem(http.StatusRequestEntityTooLarge, tooLong)
	}
	body := http.MaxBytesReader(w, r.Body, MaxBodyBytes)
	for {
		n, err := body.Read(b.in[len(b.in):cap(b.in)])
		b.in = b.in[:len(b.in)+n]
		var long *http.MaxBytesError
		switch {
		case err == io.EOF:
			return nil
		case errors.As(err, &long):
			return problem(http.StatusRequestEntityTooLarge, tooLong)
		case err != nil:
			return problem(http.StatusBadRequest, "the body could not be read to its end; send as much as Content-Length says")
		}
		if len(b.in) == cap(b.in) {
			b.in = append(b.in, 0)[:len(b.in)]
		}
	}
}

func (b *buffer) serve(w http.ResponseWriter, status int) {
	h := w.Header()
	h["Content-Type"] = typeJSON
	h["Cache-Control"] = noStore
	w.WriteHeader(status)
	w.Write(append(b.out, '\n')) // a client that has gone needs no answer
}
