// SPDX-License-Identifier: Apache-2.0

package grpclimit

import (
	"fmt"
	"net/http"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/store"
)

func statusCode(d *mete.Decision) codes.Code {
	switch ratelimitfields.Status(d) {
	case http.StatusOK:
		return codes.OK
	case http.StatusServiceUnavailable:
		return codes.Unavailable
	case http.StatusForbidden:
		return codes.PermissionDenied
	}
	return codes.ResourceExhausted
}

// denialStatus returns the status of a denial. It never contains bucket keys or addresses.
func denialStatus(d *mete.Decision) *status.Status {
	wait := ratelimitfields.ExactWait(d)
	s := status.New(statusCode(d), message(d, wait))
	var details []protoadapt.MessageV1
	if wait != bucket.Never {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
	}
	if quota := quotaFailure(d); quota != nil {
		details = append(details, quota)
	}
	if detailed, err := s.WithDetails(details...); err == nil {
		return detailed
	}
	return s
}

func message(d *mete.Decision, wait time.Duration) string {
	switch {
	case d.Reason == mete.ReasonStoreError:
		return "rate limit could not be checked: retry in " + wait.String()
	case d.Reason == mete.ReasonMissingAttribute:
		return fmt.Sprintf("call has no value for an attribute that rule %q requires", d.Rule)
	}
	if d.Reason == mete.ReasonBlocked {
		return "calls from this client are blocked: retry in " + wait.String()
	}
	if rule := d.RefusingRule(); rule != nil {
		return fmt.Sprintf("call has more tokens than rule %q allows for one request", rule.Name)
	}
	name := d.Rule
	if decider := d.Decider(); decider != nil {
		name = decider.Limit.Name
	}
	if wait == bucket.Never {
		return fmt.Sprintf("call costs more than limit %q can ever allow", name)
	}
	if d.Reason == store.ReasonFull {
		return fmt.Sprintf("limit %q has no memory for new clients: retry in %v", name, wait)
	}
	return fmt.Sprintf("limit %q is exceeded: retry in %v", name, wait)
}

func quotaFailure(d *mete.Decision) *errdetails.QuotaFailure {
	var violations []*errdetails.QuotaFailure_Violation
	for i := range d.Limits() {
		s := &d.Limits()[i]
		if s.Allowed {
			continue
		}
		v := &errdetails.QuotaFailure_Violation{
			Subject:     "rule:" + s.Rule.Name,
			Description: fmt.Sprintf("limit %q is exceeded: retry in %v", s.Limit.Name, s.RetryAfter),
			QuotaId:     s.Limit.Name,
			QuotaValue:  s.Snapshot.Limit.Capacity().Whole(),
		}
		if s.RetryAfter == bucket.Never {
			v.Description = fmt.Sprintf("limit %q can never allow a cost of %v", s.Limit.Name, s.Cost)
		}
		violations = append(violations, v)
	}
	if violations == nil {
		return nil
	}
	return &errdetails.QuotaFailure{Violations: violations}
}
