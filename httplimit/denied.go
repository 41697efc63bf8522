// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"net/http"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/ratelimitfields"
)

func (m *Middleware) deny(w http.ResponseWriter, r *http.Request, d *mete.Decision, a *attempt) {
	m.shareDenial(w.Header(), r)
	client := a.client(d)
	if m.denied == nil {
		m.fields.Deny(w, r, d, client...)
		return
	}
	m.fields.Header(w.Header(), d, client...)
	answer := &denialWriter{ResponseWriter: w, status: ratelimitfields.Status(d)}
	m.denied(answer, r, *d)
	answer.begin()
}

// A denialWriter sends the default status of a denial if [Config.Denied] sends none. Otherwise, clients get 200.
type denialWriter struct {
	http.ResponseWriter
	status int
	begun  bool // the final status has been sent
}

func (w *denialWriter) WriteHeader(status int) {
	w.begun = w.begun || status >= http.StatusOK
	w.ResponseWriter.WriteHeader(status)
}

func (w *denialWriter) Write(b []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(b)
}

func (w *denialWriter) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *denialWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *denialWriter) begin() {
	if !w.begun {
		w.WriteHeader(w.status)
	}
}
