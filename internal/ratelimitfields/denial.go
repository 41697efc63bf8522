// SPDX-License-Identifier: Apache-2.0

package ratelimitfields

import (
	"cmp"
	"net/http"
	"strconv"
	"sync"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/denialbody"
)

// Status returns the HTTP status of a response to d. It is the status of [Status], unless the policy sets another one
// for denials by a limit.
func (w *Writer) Status(d *mete.Decision) int {
	if a := w.answerOf(d, nil); a != nil && a.Status != 0 {
		return a.Status
	}
	return Status(d)
}

// answerOf returns the response that the policy defines for d, or else the standard one, which may be nil. It defines only denials by a limit: a missing
// attribute, a block and a failed store keep their own statuses. A request with too many tokens counts as denied by a limit.
func (w *Writer) answerOf(d *mete.Decision, standard *denialbody.Answer) *denialbody.Answer {
	if d.Allowed || d.Reason == mete.ReasonStoreError || w.ignoreRules {
		return nil
	}
	if rule := d.RefusingRule(); rule != nil && d.Reason != mete.ReasonMissingAttribute {
		return cmp.Or(rule.Denial, standard)
	}
	decider := d.Decider()
	if decider == nil || decider.Allowed || decider.Rule == nil {
		return nil
	}
	return cmp.Or(decider.Rule.Denial, standard)
}

// A WriteFunc sends a problem, as [Write] does.
type WriteFunc func(http.ResponseWriter, *http.Request, *api.Problem)

// writeDenial sends the status and the body of a denial. retry is the value of Retry-After.
func (w *Writer) writeDenial(rw http.ResponseWriter, r *http.Request, d *mete.Decision, standard *denialbody.Answer, write WriteFunc, retry int64) {
	problem, a := problemOf(d, retry), w.answerOf(d, standard)
	if a != nil && a.Status != 0 {
		problem.Status = a.Status
	}
	values := denialbody.Values{Message: problem.Detail}
	if retry != never {
		values.RetryAfter = strconv.FormatInt(retry, 10)
	}
	t := a.Template(&values)
	switch {
	case a == nil:
		write(rw, r, problem)
		return
	case t == nil: // the policy wants a problem
		Write(rw, r, problem)
		return
	}
	values.Reason, values.Rule = d.Reason, d.Rule
	if decider := d.Decider(); decider != nil {
		values.Rule = decider.Rule.Name
		values.Limit = strconv.FormatInt(maxQuota(decider.Limit.Bucket).Whole(), 10)
		values.Remaining = strconv.FormatInt(min(decider.Remaining().Whole(), maxInteger), 10)
	}
	values.Status = strconv.Itoa(problem.Status)
	h := rw.Header()
	h["Content-Type"], h["X-Content-Type-Options"] = t.Header, noSniff
	rw.WriteHeader(problem.Status)
	if r.Method == http.MethodHead {
		return
	}
	body := texts.Get().(*[]byte)
	defer texts.Put(body)
	*body = t.Append((*body)[:0], &values)
	rw.Write(*body) // ignore a client that is gone
}

// noSniff tells browsers not to guess another type, in which the values would not be escaped.
var noSniff = []string{"nosniff"}

var texts = sync.Pool{New: func() any { return new([]byte) }}
