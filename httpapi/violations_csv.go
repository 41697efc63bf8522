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
	// maxViolationsCSV bounds the rows of a file. Where more match, its last line says so.
	maxViolationsCSV = 100_000

	// csvPage is how many rows are asked for at once: no question waits for a slow
	// reader.
	csvPage = 2000

	// csvPatience is how long a reader may take to accept one page.
	csvPatience = time.Minute

	// maxFiles bounds the files that are written at the same time: slow readers must not
	// leave the others no room.
	maxFiles = 4
)

// csvColumns is the first line.
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
		return api.NewProblem(http.StatusBadRequest, "a file has all rows: leave out cursor and limit")
	}
	select {
	case a.files <- struct{}{}:
		defer func() { <-a.files }()
	default:
		w.Header().Set("Retry-After", "5")
		return api.NewProblem(http.StatusServiceUnavailable, fmt.Sprintf("the server writes %d files already; try again later", maxFiles))
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
		// It has begun. Cut off, nobody takes it for all there is.
		panic(http.ErrAbortHandler)
	}
	return nil
}

// writeViolations writes the rows from the first ones on.
func (a *API) writeViolations(w http.ResponseWriter, r *http.Request, f ViolationFilter, rows []api.Violation) (err error) {
	control := http.NewResponseController(w)
	out := newCSV(w)
	out.line(csvColumns)
	for left := maxViolationsCSV; ; {
		_ = control.SetWriteDeadline(time.Now().Add(csvPatience)) // where it cannot, another bound holds
		for i := range rows[:min(len(rows), left)] {
			conceal(&rows[i], f.SeeKeys)
			out.line(csvCells(&rows[i]))
		}
		if err := out.flush(); err != nil {
			return err
		}
		switch {
		case len(rows) > left:
			end := make([]string, len(csvColumns))
			end[0] = fmt.Sprintf("incomplete: more rows match than the %d that a file may have; ask about less time", maxViolationsCSV)
			out.line(end)
			return out.flush()
		case len(rows) < f.Limit:
			return nil
		}
		left -= len(rows)
		f.After = placeOf(&rows[len(rows)-1])
		f.Limit = min(csvPage, left+1) // one more, to know whether there is one
		if rows, err = a.live.Violations.List(r.Context(), f); err != nil {
			return err
		}
	}
}

// csvCells are a row as cells.
func csvCells(v *api.Violation) []string {
	mode := "enforced"
	if v.Shadow {
		mode = "shadow"
	}
	tokens, retry := "", "never"
	if v.Tokens != nil {
		tokens = number(*v.Tokens)
	}
	if v.RetryAfter != nil {
		retry = number(*v.RetryAfter)
	}
	return []string{
		v.At.UTC().Format(time.RFC3339Nano), v.LastAt.UTC().Format(time.RFC3339Nano), strconv.FormatInt(v.Denials, 10), mode,
		v.Rule, v.Limit, v.Reason, text(v.Key), text(v.User), text(v.Address), text(v.Endpoint),
		tokens, number(v.Cost), retry, v.Node, strconv.FormatInt(v.ID, 10),
	}
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// text is what is known, or nothing.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// A csvFile is written line by line.
type csvFile struct{ w *csv.Writer }

func newCSV(w io.Writer) csvFile {
	c := csv.NewWriter(w)
	c.UseCRLF = true
	return csvFile{c}
}

// line writes cells that are text to whatever opens the file: a spreadsheet takes what
// begins with one of these for a formula, which can call programs and send what is
// beside it elsewhere.
func (f csvFile) line(cells []string) {
	for i, c := range cells {
		if c != "" && strings.IndexByte("=+-@\t\r\n", c[0]) >= 0 {
			cells[i] = "'" + c
		}
	}
	_ = f.w.Write(cells) // flush has the error
}

func (f csvFile) flush() error {
	f.w.Flush()
	return f.w.Error()
}
