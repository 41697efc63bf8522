// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"errors"
	"net/http"
	"time"
)

// A violationPage is some of the rows that a filter means, newest first.
type violationPage struct {
	From time.Time   `json:"from"`
	To   time.Time   `json:"to"`
	Rows []Violation `json:"rows"`
	Next *string     `json:"next"` // the cursor of the next page; null: there is none

	// Masked says that who asks may not see whose rows they are.
	Masked bool `json:"masked"`
}

// serveViolations answers one page of rows.
func (h *Handler) serveViolations(w http.ResponseWriter, r *http.Request, v Viewer) error {
	f, err := h.violationFilter(r, v)
	if err != nil {
		return err
	}
	most := f.Limit
	f.Limit++ // one more, to know whether there is one
	rows, err := h.config.Violations.List(r.Context(), f)
	if err != nil {
		return violationProblem(w, err)
	}
	page := violationPage{From: f.From, To: f.To, Rows: rows, Masked: !f.SeeKeys}
	if len(rows) > most {
		page.Rows = rows[:most]
		next := rows[most-1].place().String()
		page.Next = &next
	}
	if page.Rows == nil {
		page.Rows = []Violation{}
	}
	for i := range page.Rows {
		page.Rows[i].conceal(f.SeeKeys)
	}
	return answerJSON(w, page)
}

// serveViolationHistogram says when the rows of a filter were.
func (h *Handler) serveViolationHistogram(w http.ResponseWriter, r *http.Request, v Viewer) error {
	f, err := h.violationFilter(r, v)
	if err != nil {
		return err
	}
	histogram, err := h.config.Violations.Histogram(r.Context(), f)
	if err != nil {
		return violationProblem(w, err)
	}
	if histogram.Series == nil {
		histogram.Series = []ViolationSeries{}
	}
	return answerJSON(w, histogram)
}

// violationFilter reads what is asked for, where there is anything to ask.
func (h *Handler) violationFilter(r *http.Request, v Viewer) (ViolationFilter, error) {
	if h.config.Violations == nil {
		return ViolationFilter{}, refuse(http.StatusNotFound, "violations are not recorded here; start the server with --violations postgres://HOST/DATABASE")
	}
	return readFilter(r.URL.Query(), v, time.Now())
}

func (v *Violation) place() ViolationPlace { return ViolationPlace{v.At, v.ID} }

// conceal leaves of the endpoint what all may see who look. Whose row it is has been
// masked by whoever found it.
func (v *Violation) conceal(seeKeys bool) {
	if !seeKeys && v.Endpoint != nil {
		shown := maskedEndpoint(*v.Endpoint)
		v.Endpoint = &shown
	}
}

// violationProblem says why rows cannot be shown.
func violationProblem(w http.ResponseWriter, err error) error {
	if e, ok := errors.AsType[*FilterError](err); ok {
		return blame(e.Field, e.Detail)
	}
	switch {
	case errors.Is(err, ErrViolationsSlow):
		return refuse(http.StatusServiceUnavailable, "the database took too long to find them; ask about less time, or for one rule, key, user or address")
	case errors.Is(err, ErrViolationsUnavailable):
		w.Header().Set("Retry-After", "5")
		return refuse(http.StatusServiceUnavailable, "the database of the violations does not answer; what is denied meanwhile is kept for it. Try again")
	}
	return err
}
