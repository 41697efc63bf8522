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
)

// The problem types of the draft, section 5.
const (
	typeQuotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	typeReduced       = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	typeAbnormal      = "https://iana.org/assignments/http-problem-types#abnormal-usage-detected"
)

// Status returns the HTTP status of d: 200 where it is allowed, 503 where the
// store could not answer and nothing else could decide, 403 where the request lacks an attribute it must have
// (it is not too early, so that a later one like it would fare no better), and
// else 429: also where an administrator has blocked it for a while.
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

// problemOf describes the denial d, without any bucket key or address, and with the seconds of its Retry-After.
func problemOf(d *mete.Decision, retry int64) *api.Problem {
	p := &api.Problem{Status: Status(d), RetryAfter: api.Seconds(ExactWait(d))}
	switch {
	case p.Status == http.StatusServiceUnavailable:
		p.Type, p.Title = typeReduced, "Temporarily reduced capacity"
		p.Detail = "The rate limit of this request could not be checked. " + try(retry)
		if d.Rule != "" {
			p.ViolatedPolicies = []string{d.Rule}
		}
	case p.Status == http.StatusForbidden:
		p.Type, p.Title = "about:blank", http.StatusText(p.Status)
		p.Detail = fmt.Sprintf("The request lacks an attribute that rule %q requires.", d.Rule)
	case d.Reason == mete.ReasonBlocked:
		p.Type, p.Title = typeAbnormal, "Blocked"
		p.Detail = "Requests like this one are blocked for now."
		if retry != never {
			p.Detail += " " + try(retry)
		}
	default:
		p.Type, p.Title = typeQuotaExceeded, "Quota exceeded"
		name := d.Rule
		if decider := d.Decider(); decider != nil {
			name = decider.Limit.Name
		}
		p.ViolatedPolicies, p.Degraded = violated(d), d.Degraded
		if retry == never {
			p.Detail = fmt.Sprintf("The request costs more than limit %q can ever admit. Waiting does not help.", name)
		} else {
			p.Detail = fmt.Sprintf("Limit %q is used up. %s", name, try(retry))
		}
	}
	return p
}

// Disputed is the problem of a request that servers read differently: whichever rules
// it was put under, the handler might take it for another. The detail names the part
// that they dispute.
func Disputed(detail string) *api.Problem {
	return &api.Problem{Type: "about:blank", Title: http.StatusText(http.StatusBadRequest), Status: http.StatusBadRequest, Detail: detail}
}

// try tells people when to come back.
func try(retry int64) string {
	if retry == 1 {
		return "Try again in 1 second."
	}
	return "Try again in " + strconv.FormatInt(retry, 10) + " seconds."
}

// violated returns the names of the limits that denied.
func violated(d *mete.Decision) []string {
	var names []string
	for i := range d.Limits() {
		if s := &d.Limits()[i]; !s.Allowed {
			names = append(names, s.Limit.Name)
		}
	}
	return names
}

// Header values that are assigned as they are: net/http does not change them.
var (
	problemType = []string{"application/problem+json"}
	noStore     = []string{"no-store"}
)

// Write answers r with p, which no cache keeps. HEAD requests get the header fields only.
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
	rw.Write(body.Bytes())     // a client that has gone needs no answer
}

// A body is the memory in which problems are written.
type body struct {
	bytes.Buffer
	encoder *json.Encoder
}

var bodies = sync.Pool{New: func() any {
	b := new(body)
	b.encoder = json.NewEncoder(&b.Buffer)
	return b
}}
