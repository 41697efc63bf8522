// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/metehq/mete/api"
)

func (a *API) reload(again func(context.Context) error) func(http.ResponseWriter, *http.Request) *api.Problem {
	return func(w http.ResponseWriter, r *http.Request) *api.Problem {
		if p := a.checkSender(w, r); p != nil {
			return p
		}
		if _, p := parseQuery(r); p != nil {
			return p
		}
		if err := again(r.Context()); err != nil {
			return reloadProblem(err)
		}
		return serveJSON(w, api.Reload{PolicyVersion: a.lim.Policy().Version(), Rules: len(a.lim.Policy().Rules())})
	}
}

// reloadProblem explains why the old policy remains. The caller may write the policy and see details.
func reloadProblem(err error) *api.Problem {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return api.NewProblem(http.StatusServiceUnavailable, "the request timed out; the policy may or may not have been reloaded: check policy_version in an explanation")
	}
	return api.NewProblem(http.StatusUnprocessableEntity, "the old policy remains active: "+err.Error())
}
