// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"strings"

	"github.com/metehq/mete/internal/ratelimitfields"
)

// ownFields are the header fields that were set before the upstream was asked.
// They are kept aside, because [httputil.ReverseProxy] clears the header after
// an informational answer, and adds what the upstream sends to what is there.
type ownFields struct {
	header http.Header // of the answer
	fields http.Header
}

type ownFieldsKey struct{}

func withOwnFields(w http.ResponseWriter, r *http.Request) *http.Request {
	own := &ownFields{header: w.Header(), fields: maps.Clone(w.Header())}
	return r.WithContext(context.WithValue(r.Context(), ownFieldsKey{}, own))
}

// keepOwnFields puts our fields back, and removes the upstream's rate limit
// fields of the same names from res.
func keepOwnFields(res *http.Response) error {
	own, ok := res.Request.Context().Value(ownFieldsKey{}).(*ownFields)
	if !ok {
		return nil
	}
	own.restore()
	if _, ok := res.Header["Content-Type"]; !ok {
		own.header["Content-Type"] = nil // net/http must not guess what the upstream does not say
	}
	delete(res.Header, "X-Ratelimit-Reason") // why a request was denied is ours to say
	for name := range own.fields {
		if canonical := http.CanonicalHeaderKey(name); strings.Contains(canonical, "Ratelimit") {
			delete(res.Header, canonical)
		}
	}
	return nil
}

func (o *ownFields) restore() { maps.Copy(o.header, o.fields) }

// answerError answers a request for which there is no answer of the upstream.
func (p *Proxy) answerError(w http.ResponseWriter, r *http.Request, err error) {
	if own, ok := r.Context().Value(ownFieldsKey{}).(*ownFields); ok {
		own.restore()
	}
	problem := ratelimitfields.Problem{Type: "about:blank", Status: http.StatusBadGateway}
	var tooLong *http.MaxBytesError
	var timeout net.Error
	switch {
	case errors.As(err, &tooLong):
		problem.Status = http.StatusRequestEntityTooLarge
		problem.Detail = "The body of the request is too long."
	case errors.Is(r.Context().Err(), context.Canceled):
		// The client has gone and sees nothing of this, unless it is the server
		// that ends its requests.
		problem.Detail = "The request was given up."
	case errors.As(err, &timeout) && timeout.Timeout():
		problem.Status = http.StatusGatewayTimeout
		problem.Detail = "The upstream server did not answer in time."
		p.config.OnError(r, err)
	default:
		problem.Detail = "The upstream server could not be reached, or broke off."
		p.config.OnError(r, err)
	}
	problem.Title = http.StatusText(problem.Status)
	problem.Write(w, r)
}
