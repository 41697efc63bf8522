// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
)

// An Admission is an admitted request with a response to come. Limits with charge_on or a cost in the response depend on
// it, and the request may hold slots until its end. A nil Admission is valid: nothing depends on the response.
//
// All work at the end of a request belongs here. [Middleware.Wrap], [Admission.Run] and package proxy call respond at
// most once, when the status and the header are final, and end exactly once. This includes handlers that panic, clients
// that disconnect, and connections that are hijacked.
type Admission struct {
	reservation *mete.Reservation // nil if no charge depends on the response
	slots       *mete.Slots       // nil without concurrency limits
	call        *aiCall           // to a language model, or nil
	onCall      func(context.Context, *policy.ModelCall)
	readOns     *readOns
	settled     bool
}

func newAdmission(r *mete.Reservation, slots *mete.Slots, call *aiCall) *Admission {
	if r == nil && slots == nil {
		return nil
	}
	return &Admission{reservation: r, slots: slots, call: call}
}

// respond settles the request before its response begins, unless the rest of the response matters. A refund then does
// not wait for the end of a stream.
func (a *Admission) respond(ctx context.Context, res *policy.Response) {
	if a.reservation != nil && !a.reservation.NeedsEnd(res) {
		a.settle(ctx, res)
	}
}

// end settles the request at the end of its response, and releases its slots. The next request of the client then has
// them.
func (a *Admission) end(ctx context.Context, res *policy.Response) {
	res.Ended = true
	a.settle(ctx, res)
	a.slots.ReleaseSoon(ctx)
}

func (a *Admission) settle(ctx context.Context, res *policy.Response) {
	if a.reservation != nil && !a.settled {
		a.settled = true
		a.reservation.FinishSoon(ctx, *res)
	}
}

// A Response is the response of a framework's handler: see [Admission.Run].
type Response struct {
	Status int         // 0 means 200
	Header http.Header // with its trailer, if any
	Bytes  int64       // size of the body
}

// Run calls the handler of a framework for the admitted request r, and settles its charge by the response that the
// handler returns. If the handler panics, the status counts as 500. If the client disconnects before the handler
// returns, the charge stays. Requests to language models keep the charge of their estimate. [Middleware.Wrap] does the same
// for handlers of net/http, and knows when responses begin.
func (a *Admission) Run(r *http.Request, handler func() Response) {
	if a == nil {
		handler()
		return
	}
	a.slots.KeepAlive()
	sent, returned := Response{Status: http.StatusInternalServerError}, false
	defer func() {
		var res policy.Response
		if !isGone(r) && (returned || a.call == nil) {
			res, _ = newResponse(cmp.Or(sent.Status, http.StatusOK), sent.Header)
			res.Bytes = max(sent.Bytes, 0)
		}
		a.end(r.Context(), &res)
	}()
	sent = handler()
	returned = true
}

// newResponse returns the response with a final status and header. complete is false if the trailer of a gRPC response
// will have its code. Without a code it is UNKNOWN, as for clients.
func newResponse(status int, header http.Header) (res policy.Response, complete bool) {
	res = policy.Response{Status: status, Header: func(name string) (string, bool) { return field(header, name) }}
	if !isGRPC(header.Get("Content-Type")) {
		return res, true
	}
	code, ok := field(header, "grpc-status")
	res.GRPC = policy.ParseGRPCCode(code)
	return res, ok
}

// isGone reports whether the client of r has disconnected.
func isGone(r *http.Request) bool { return errors.Is(r.Context().Err(), context.Canceled) }

func isGRPC(contentType string) bool {
	rest, ok := strings.CutPrefix(contentType, "application/grpc")
	return ok && !strings.HasPrefix(rest, "-web") // grpc-web sends its code in the body
}

// field returns a field of the header or of the trailer, which net/http keeps in the same map.
func field(header http.Header, name string) (string, bool) {
	key := http.CanonicalHeaderKey(name)
	values := header[key]
	if len(values) == 0 {
		values = header[http.TrailerPrefix+key]
	}
	if len(values) != 1 {
		return "", false
	}
	return values[0], true
}
