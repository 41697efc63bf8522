// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/metehq/mete/internal/ratelimitfields"
)

// MaxBodyBytes bounds the body of a request. A longer one is answered with 413.
const MaxBodyBytes = 1 << 20

// A problem is an answer that is an error (RFC 9457).
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Field  string `json:"field,omitempty"` // of what was sent, if it is to blame
}

func (p *problem) Error() string { return "dashboard: " + p.Detail }

// refuse returns the problem of that status.
func refuse(status int, format string, args ...any) *problem {
	return &problem{Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// answerError writes what went wrong. What is no problem of who asked is for the log: it
// may name hosts.
func answerError(w http.ResponseWriter, r *http.Request, err error) {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		if r.Context().Err() == nil { // else who asked is gone
			slog.ErrorContext(r.Context(), "dashboard: a request was not answered", "path", r.URL.Path, "error", err)
		}
		p = refuse(http.StatusInternalServerError, "something is wrong in the server; its log says what")
	}
	ratelimitfields.WriteProblem(w, r, p.Status, p)
}

// answerJSON writes v.
func answerJSON(w http.ResponseWriter, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("dashboard: answer: %w", err)
	}
	writeJSON(w, text)
	return nil
}

func writeJSON(w http.ResponseWriter, text []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write(append(text, '\n')) // who asked may be gone
}

// readJSON reads the body into v, which must have a member for all of it.
func readJSON(w http.ResponseWriter, r *http.Request, v any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, MaxBodyBytes))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			return refuse(http.StatusBadRequest, "there is something behind the JSON object; send one")
		}
		return nil
	}
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return refuse(http.StatusRequestEntityTooLarge, "the body is longer than %d bytes; send less", MaxBodyBytes)
	}
	return refuse(http.StatusBadRequest, "the body is not understood: %v", err)
}
