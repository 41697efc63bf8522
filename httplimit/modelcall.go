// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"context"

	"github.com/metehq/mete/ai"
	"github.com/metehq/mete/policy"
)

// setCallHook sets the hook for the end of a request to a language model, and the set for its rest after a hang-up.
func (a *Admission) setCallHook(hook func(context.Context, *policy.ModelCall), of *readOns) {
	if a != nil && a.call != nil {
		a.onCall, a.readOns = hook, of
	}
}

// reportCall calls the hook with the usage of a finished response.
func (a *Admission) reportCall(ctx context.Context, res *policy.Response) {
	if a.onCall == nil {
		return
	}
	c := a.call
	call := policy.ModelCall{Model: c.request.Model, Usage: res.Usage}
	if c.cut {
		call.Cut = c.streaming.OnLimit
	}
	if res.Usage != nil && c.reader != nil {
		result := c.reader.Result()
		call.Reported = result.State == ai.FinalUsage && c.usageSoFar() == result.Usage
	}
	a.onCall(ctx, &call)
}
