// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/metehq/mete/api"
)

// Violations finds rows in a record of denials. It must be safe for concurrent use, and end
// slow searches by itself.
//
// Its errors are [ErrViolationsSlow], [ErrViolationsUnavailable], a [FilterError], or an
// error of the server.
type Violations interface {
	// List returns at most f.Limit rows, newest first, after the place f.After.
	List(ctx context.Context, f ViolationFilter) ([]api.Violation, error)

	// Histogram counts the rows over time. It ignores f.After and f.Limit.
	Histogram(ctx context.Context, f ViolationFilter) (api.ViolationHistogram, error)
}

// Errors of [Violations].
var (
	ErrViolationsSlow        = errors.New("httpapi: the database of the violations took too long")
	ErrViolationsUnavailable = errors.New("httpapi: the database of the violations does not answer")
)

// A FilterError rejects one member of a filter.
type FilterError struct{ Field, Detail string }

// Error implements error.
func (e *FilterError) Error() string { return "httpapi: filter: " + e.Field + ": " + e.Detail }

// serveViolations serves /v1/violations: one page of rows.
func (a *API) serveViolations(w http.ResponseWriter, r *http.Request) *api.Problem {
	f, p := a.violationFilter(r)
	if p != nil {
		return p
	}
	most := f.Limit
	f.Limit++ // one more, to know whether there is one
	rows, err := a.live.Violations.List(r.Context(), f)
	if err != nil {
		return violationProblem(w, r, err)
	}
	page := api.Violations{From: f.From, To: f.To, Rows: rows, Masked: !f.SeeKeys}
	if len(rows) > most {
		page.Rows = rows[:most]
		next := placeOf(&rows[most-1]).String()
		page.Next = &next
	}
	if page.Rows == nil {
		page.Rows = []api.Violation{}
	}
	for i := range page.Rows {
		conceal(&page.Rows[i], f.SeeKeys)
	}
	return serveJSON(w, page)
}

// serveViolationHistogram serves /v1/violations/histogram: the rows of a filter over time.
func (a *API) serveViolationHistogram(w http.ResponseWriter, r *http.Request) *api.Problem {
	f, p := a.violationFilter(r)
	if p != nil {
		return p
	}
	histogram, err := a.live.Violations.Histogram(r.Context(), f)
	if err != nil {
		return violationProblem(w, r, err)
	}
	if histogram.Series == nil {
		histogram.Series = []api.ViolationSeries{}
	}
	return serveJSON(w, histogram)
}

// violationFilter reads the filter of a request, if the server records violations.
func (a *API) violationFilter(r *http.Request) (ViolationFilter, *api.Problem) {
	if a.live.Violations == nil {
		return ViolationFilter{}, api.NewProblem(http.StatusNotFound, "violations are not recorded here; start the server with --violations postgres://HOST/DATABASE")
	}
	return readFilter(r.URL.Query(), a.seesKeys(r), time.Now())
}

func placeOf(v *api.Violation) ViolationPlace { return ViolationPlace{v.At, v.ID} }

// conceal cuts the endpoint to the part that the role read sees. [Violations] has masked the
// rest.
func conceal(v *api.Violation, seesKeys bool) {
	if !seesKeys && v.Endpoint != nil {
		shown := maskedEndpoint(*v.Endpoint)
		v.Endpoint = &shown
	}
}

// violationProblem returns the reason why there are no rows. An unknown error stays in the
// log: it may name hosts.
func violationProblem(w http.ResponseWriter, r *http.Request, err error) *api.Problem {
	if e, ok := errors.AsType[*FilterError](err); ok {
		return blame(e.Field, e.Detail)
	}
	switch {
	case errors.Is(err, ErrViolationsSlow):
		return api.NewProblem(http.StatusServiceUnavailable, "the database took too long to find them; ask about less time, or for one rule, key, user or address")
	case errors.Is(err, ErrViolationsUnavailable):
		w.Header().Set("Retry-After", "5")
		return api.NewProblem(http.StatusServiceUnavailable, "the database of the violations does not answer; what is denied meanwhile is kept for it. Try again")
	}
	if r.Context().Err() == nil { // else the client is gone
		slog.ErrorContext(r.Context(), "httpapi: violations not found", "path", r.URL.Path, "err", err)
	}
	return api.NewProblem(http.StatusInternalServerError, "the server failed; its log has the error")
}
