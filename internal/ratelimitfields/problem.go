// SPDX-License-Identifier: Apache-2.0

package ratelimitfields

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/store"
)

// The problem types of the draft, section 5.
const (
	typeQuotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	typeReduced       = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	typeAbnormal      = "https://iana.org/assignments/http-problem-types#abnormal-usage-detected"
)

// Status returns the HTTP status of d: 200 if it is allowed, and 503 if the store is unavailable and the rule
// fails closed. It returns 403 if a required attribute is missing, because a retry would not help. Otherwise it
// returns 429, also for blocked clients.
func Status(d *mete.Decision) int {
	switch {
	case d.Allowed:
		return http.StatusOK
	case d.Reason == mete.ReasonStoreError:
		return http.StatusServiceUnavailable
	case d.Reason == mete.ReasonMissingAttribute:
		return http.StatusForbidden
	}
	return http.StatusTooManyRequests
}

// problemOf describes the denial d without bucket keys or addresses. retry is the value of Retry-After.
func problemOf(d *mete.Decision, retry int64) *api.Problem {
	p := &api.Problem{Status: Status(d), RetryAfter: api.Seconds(ExactWait(d))}
	switch {
	case p.Status == http.StatusServiceUnavailable:
		p.Type, p.Title = typeReduced, "Temporarily reduced capacity"
		p.Detail = "The rate limit could not be checked. " + retryText(retry)
		if d.Rule != "" {
			p.ViolatedPolicies = []string{d.Rule}
		}
	case p.Status == http.StatusForbidden:
		p.Type, p.Title = "about:blank", http.StatusText(p.Status)
		p.Detail = fmt.Sprintf("The request has no value for an attribute that rule %q requires.", d.Rule)
	case d.Reason == mete.ReasonBlocked:
		p.Type, p.Title = typeAbnormal, "Blocked"
		p.Detail = "Requests from this client are temporarily blocked."
		if retry != never {
			p.Detail += " " + retryText(retry)
		}
	default:
		p.Type, p.Title = typeQuotaExceeded, "Quota exceeded"
		name := d.Rule
		if decider := d.Decider(); decider != nil {
			name = decider.Limit.Name
		}
		p.ViolatedPolicies, p.Degraded = violatedLimits(d), d.Degraded
		if rule := d.RefusingRule(); rule != nil {
			p.ViolatedPolicies = []string{rule.Name}
			p.Detail = fmt.Sprintf("The request has more tokens than rule %q allows for one request. Waiting does not help.", rule.Name)
		} else if retry == never {
			p.Detail = fmt.Sprintf("The request costs more than limit %q can ever allow. Waiting does not help.", name)
		} else if d.Reason == store.ReasonFull {
			p.Detail = fmt.Sprintf("Limit %q has no memory for new clients. %s", name, retryText(retry))
		} else {
			p.Detail = fmt.Sprintf("Limit %q is exceeded. %s", name, retryText(retry))
		}
	}
	return p
}

// NewAmbiguousProblem returns the problem for an ambiguous request, which the handler might interpret differently than the
// rules. detail names the ambiguous part.
func NewAmbiguousProblem(detail string) *api.Problem {
	return &api.Problem{Type: "about:blank", Title: http.StatusText(http.StatusBadRequest), Status: http.StatusBadRequest, Detail: detail}
}

func retryText(retry int64) string {
	if retry == 1 {
		return "Try again in 1 second."
	}
	return "Try again in " + strconv.FormatInt(retry, 10) + " seconds."
}

func violatedLimits(d *mete.Decision) []string {
	var names []string
	for i := range d.Limits() {
		if s := &d.Limits()[i]; !s.Allowed {
			names = append(names, s.Limit.Name)
		}
	}
	return names
}

// Shared header values. net/http does not modify them.
var (
	problemType = []string{"application/problem+json"}
	noStore     = []string{"no-store"}
)

// Write sends p as the uncacheable response to r. For HEAD requests it sends only the header.
func Write(rw http.ResponseWriter, r *http.Request, p *api.Problem) {
	h := rw.Header()
	h["Content-Type"], h["Cache-Control"] = problemType, noStore
	rw.WriteHeader(p.Status)
	if r.Method == http.MethodHead {
		return
	}
	body := bodies.Get().(*body)
	defer bodies.Put(body)
	body.Reset()
	_ = body.encoder.Encode(p) // strings and numbers always marshal
	rw.Write(body.Bytes())     // ignore a client that is gone
}

type body struct {
	bytes.Buffer
	encoder *json.Encoder
}

var bodies = sync.Pool{New: func() any {
	b := new(body)
	b.encoder = json.NewEncoder(&b.Buffer)
	return b
}}
