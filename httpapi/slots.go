// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
)

const slotsPath = "/v1/slots"

// renewSlots starts the leases of a request's slots again. A slot that has ended is a result, not an error.
func (a *API) renewSlots(ctx context.Context, buf *buffer, req *mete.Request) (*mete.Decision, *api.Problem) {
	if p := checkSlot(req); p != nil {
		return nil, p
	}
	lease, err := a.lim.RenewSlots(ctx, *req)
	held := api.Held{Held: err == nil, Lease: api.Seconds(lease)}
	switch {
	case errors.Is(err, mete.ErrSlotEnded):
		held.Lease = 0
	case err != nil:
		return nil, slotProblem(err)
	}
	buf.out = held.Append(buf.out)
	return nil, nil
}

func (a *API) releaseSlots(ctx context.Context, buf *buffer, req *mete.Request) (*mete.Decision, *api.Problem) {
	if p := checkSlot(req); p != nil {
		return nil, p
	}
	if err := a.lim.ReleaseSlots(ctx, *req); err != nil {
		return nil, slotProblem(err)
	}
	return buf.appendEmpty(nil)
}

func checkSlot(req *mete.Request) *api.Problem {
	if req.Slot != (bucket.SlotID{}) {
		return nil
	}
	return api.NewProblem(http.StatusBadRequest, `"slot" is missing; send the slot of the response to the take`)
}

func slotProblem(err error) *api.Problem {
	if errors.Is(err, mete.ErrRequest) {
		return api.NewProblem(http.StatusBadRequest, "no concurrency limit applies to the request; send the attributes of the take")
	}
	return errorProblem(err)
}
