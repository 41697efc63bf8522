// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/api"
)

const (
	// maxViolationsCSV bounds the rows of a file. If more rows match, the last line reports it.
	maxViolationsCSV = 100_000

	// csvPage is the number of rows per database query. Queries are short, so that none waits for a slow client.
	csvPage = 2000

	// csvWriteTimeout bounds the time in which the client must accept one page.
	csvWriteTimeout = time.Minute

	// maxFiles bounds concurrent downloads, so that slow clients cannot block the others.
	maxFiles = 4
)

var csvColumns = []string{
	"at", "last_at", "denials", "mode", "rule", "limit", "reason", "key", "user", "address", "endpoint",
	"tokens", "cost", "retry_after", "node", "id",
}

// serveViolationsCSV serves /v1/violations.csv: all rows of a filter as a file (RFC 4180).
func (a *API) serveViolationsCSV(w http.ResponseWriter, r *http.Request) *api.Problem {
	f, p := a.violationFilter(r)
	switch {
	case p != nil:
		return p
	case r.URL.Query().Has("cursor") || r.URL.Query().Has("limit"):
		return api.NewProblem(http.StatusBadRequest, "a CSV file contains all rows: leave out cursor and limit")
	}
	select {
	case a.files <- struct{}{}:
		defer func() { <-a.files }()
	default:
		w.Header().Set("Retry-After", "5")
		return api.NewProblem(http.StatusServiceUnavailable, fmt.Sprintf("too many downloads (%d); try again later", maxFiles))
	}
	f.Limit = csvPage
	first, err := a.live.Violations.List(r.Context(), f)
	if err != nil {
		return violationProblem(w, r, err)
	}
	header := w.Header()
	header.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	header.Set("Content-Disposition", `attachment; filename="violations-`+f.To.Format("20060102T150405Z")+`.csv"`)
	header.Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		return nil
	}
	if err := a.writeViolations(w, r, f, first); err != nil {
		// The response has begun. Abort it, so that the client does not treat the file as complete.
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (a *API) writeViolations(w http.ResponseWriter, r *http.Request, f ViolationFilter, rows []api.Violation) (err error) {
	control := http.NewResponseController(w)
	out := newCSV(w)
	out.writeRow(csvColumns)
	for left := maxViolationsCSV; ; {
		_ = control.SetWriteDeadline(time.Now().Add(csvWriteTimeout)) // without support, the server's own timeout applies
		for i := range rows[:min(len(rows), left)] {
			maskRow(&rows[i], f.SeeKeys)
			out.writeRow(csvCells(&rows[i]))
		}
		if err := out.flush(); err != nil {
			return err
		}
		switch {
		case len(rows) > left:
			end := make([]string, len(csvColumns))
			end[0] = fmt.Sprintf("incomplete: more than %d rows match; select less time", maxViolationsCSV)
			out.writeRow(end)
			return out.flush()
		case len(rows) < f.Limit:
			return nil
		}
		left -= len(rows)
		f.After = placeOf(&rows[len(rows)-1])
		f.Limit = min(csvPage, left+1) // one more shows whether there is a next page
		if rows, err = a.live.Violations.List(r.Context(), f); err != nil {
			return err
		}
	}
}

func csvCells(v *api.Violation) []string {
	mode := "enforced"
	if v.Shadow {
		mode = "shadow"
	}
	tokens, retry := "", "never"
	if v.Tokens != nil {
		tokens = formatNumber(*v.Tokens)
	}
	if v.RetryAfter != nil {
		retry = formatNumber(*v.RetryAfter)
	}
	return []string{
		v.At.UTC().Format(time.RFC3339Nano), v.LastAt.UTC().Format(time.RFC3339Nano), strconv.FormatInt(v.Denials, 10), mode,
		v.Rule, v.Limit, v.Reason, stringOrEmpty(v.Key), stringOrEmpty(v.User), stringOrEmpty(v.Address), stringOrEmpty(v.Endpoint),
		tokens, formatNumber(v.Cost), retry, v.Node, strconv.FormatInt(v.ID, 10),
	}
}

func formatNumber(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func stringOrEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

type csvFile struct{ w *csv.Writer }

func newCSV(w io.Writer) csvFile {
	c := csv.NewWriter(w)
	c.UseCRLF = true
	return csvFile{c}
}

// writeRow writes cells as plain text. A spreadsheet treats a cell that starts with one of these characters as a
// formula, which can run programs and send data elsewhere.
func (f csvFile) writeRow(cells []string) {
	for i, c := range cells {
		if c != "" && strings.IndexByte("=+-@\t\r\n", c[0]) >= 0 {
			cells[i] = "'" + c
		}
	}
	_ = f.w.Write(cells) // flush returns the error
}

func (f csvFile) flush() error {
	f.w.Flush()
	return f.w.Error()
}
