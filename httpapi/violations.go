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

// Violations searches a record of denials. It must be safe for concurrent use and must time out slow searches
// itself.
//
// Its errors are [ErrViolationsSlow], [ErrViolationsUnavailable], a [FilterError], or an internal error.
type Violations interface {
	// List returns at most f.Limit rows after f.After, newest first.
	List(ctx context.Context, f ViolationFilter) ([]api.Violation, error)

	// Histogram counts the rows over time. It ignores f.After and f.Limit.
	Histogram(ctx context.Context, f ViolationFilter) (api.ViolationHistogram, error)
}

// Errors of [Violations].
var (
	ErrViolationsSlow        = errors.New("httpapi: the violations database timed out")
	ErrViolationsUnavailable = errors.New("httpapi: the violations database is unavailable")
)

// A FilterError rejects one member of a filter.
type FilterError struct{ Field, Detail string }

// Error implements error.
func (e *FilterError) Error() string { return "httpapi: filter: " + e.Field + ": " + e.Detail }

func (a *API) serveViolations(w http.ResponseWriter, r *http.Request) *api.Problem {
	f, p := a.violationFilter(r)
	if p != nil {
		return p
	}
	most := f.Limit
	f.Limit++ // one more shows whether there is a next page
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
		maskRow(&page.Rows[i], f.SeeKeys)
	}
	return serveJSON(w, page)
}

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

func (a *API) violationFilter(r *http.Request) (ViolationFilter, *api.Problem) {
	if a.live.Violations == nil {
		return ViolationFilter{}, api.NewProblem(http.StatusNotFound, "this server does not record violations; start it with --violations postgres://HOST/DATABASE")
	}
	return readFilter(r.URL.Query(), a.canSeeKeys(r), time.Now())
}

func placeOf(v *api.Violation) ViolationPlace { return ViolationPlace{v.At, v.ID} }

// maskRow shortens the endpoint for callers that may not see keys. [Violations] has already masked the other
// members.
func maskRow(v *api.Violation, seesKeys bool) {
	if !seesKeys && v.Endpoint != nil {
		shown := maskedEndpoint(*v.Endpoint)
		v.Endpoint = &shown
	}
}

// violationProblem converts an error of [Violations]. It logs an internal error, which may contain host names.
func violationProblem(w http.ResponseWriter, r *http.Request, err error) *api.Problem {
	if e, ok := errors.AsType[*FilterError](err); ok {
		return parameterProblem(e.Field, e.Detail)
	}
	switch {
	case errors.Is(err, ErrViolationsSlow):
		return api.NewProblem(http.StatusServiceUnavailable, "the database query timed out; select less time, or one rule, key, user or address")
	case errors.Is(err, ErrViolationsUnavailable):
		w.Header().Set("Retry-After", "5")
		return api.NewProblem(http.StatusServiceUnavailable, "the violations database is unavailable; new violations are stored later. Try again")
	}
	if r.Context().Err() == nil { // ignore a client that is gone
		slog.ErrorContext(r.Context(), "httpapi: cannot query violations", "path", r.URL.Path, "err", err)
	}
	return api.NewProblem(http.StatusInternalServerError, "internal error; see the server's log")
}
