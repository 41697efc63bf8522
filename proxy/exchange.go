// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"github.com/metehq/mete/internal/httpfacts"
)

// An exchange is one request that was admitted, on its way to a server and back. It does
// the work of [net/http/httputil.ReverseProxy], which behind a middleware reached 0.85 of
// the requests per second of a bare one.
type exchange struct {
	proxy    *Proxy
	upstream *upstream
	w        http.ResponseWriter
	facts    *httpfacts.Facts // of in
	in, out  *http.Request    // as it was admitted, and as it is sent on
	url      url.URL          // of out
	fields   forwardedFields
	protocol string // that the connection may be upgraded to; "" for none
	body     requestBody
	server   *server // that has the request
	cancel   context.CancelCauseFunc
	trace    httptrace.ClientTrace

	hints hints
}

// errStalled is the cause of the end of a request whose answer has stood still.
var errStalled = errors.New("the body of the answer stood still")

func newExchange(p *Proxy, u *upstream, w http.ResponseWriter, facts *httpfacts.Facts) *exchange {
	in := facts.Request()
	e := &exchange{proxy: p, upstream: u, w: w, facts: facts, in: in}
	e.trace.Got1xxResponse = e.inform
	ctx := in.Context()
	if u.stall > 0 {
		ctx, e.cancel = context.WithCancelCause(ctx)
	}
	e.out = in.WithContext(httptrace.WithClientTrace(ctx, &e.trace)) // a shallow copy
	e.out.URL, e.out.Body, e.out.Trailer, e.out.Close = &e.url, nil, nil, false
	e.protocol = p.protocolOf(in)
	e.out.Header = e.outHeader()
	return e
}

// send sends the request to a server, and to another where it could not be.
func (e *exchange) send() (*http.Response, error) {
	var (
		not tried
		err error
	)
	for {
		s := e.upstream.pick(&not)
		if s == nil {
			if err == nil {
				e.upstream.unavailable.Add(1)
				err = errUnavailable
			}
			return nil, err
		}
		if err != nil {
			e.out = e.out.WithContext(e.out.Context()) // the last try may still look at its own
			e.out.URL = new(url.URL)
		}
		var res *http.Response
		if res, err = e.sendTo(s); err == nil {
			return res, nil
		}
		if _, counts := e.verdict(nil, err); counts {
			s.errors.Add(1)
		}
		if _, unsent := errors.AsType[*dialError](err); !unsent || e.body.read.Load() || e.in.Context().Err() != nil {
			return nil, err
		}
	}
}

func (e *exchange) sendTo(s *server) (*http.Response, error) {
	e.leave()
	e.server = s
	s.inFlight.Add(1)
	e.address(s)
	transport := e.transport(s)
	observe := e.proxy.config.Observe
	if observe == nil {
		res, err := transport.RoundTrip(e.out)
		if err == nil {
			s.answered(res.StatusCode)
		}
		return res, err
	}
	begin := time.Now()
	res, err := transport.RoundTrip(e.out)
	if err == nil {
		s.answered(res.StatusCode)
	}
	now := time.Now()
	if failed, counts := e.verdict(res, err); counts {
		if sent, ok := e.body.sentAt(); ok && sent.After(begin) {
			begin = sent // until then it was the client that took its time
		} else if !ok && failed == nil {
			return res, err // an answer to part of a body: who was waiting for whom?
		}
		observe(now.Sub(begin), failed)
	}
	return res, err
}

// transport is what the request is sent to s by. Where nothing can be upgraded, none is
// asked for: HTTP/2 would refuse to send that.
func (e *exchange) transport(s *server) *http.Transport {
	switch {
	case e.protocol == "":
		return s.transport
	case s.upgrades != nil:
		return s.upgrades
	}
	e.protocol = ""
	e.out.Header = maps.Clone(e.out.Header) // the last try may still look at its own
	delete(e.out.Header, "Connection")
	delete(e.out.Header, "Upgrade")
	return s.transport
}

// errAnswer is what is observed of an answer that says that the server is in trouble.
var errAnswer = errors.New("proxy: the upstream answered that it cannot")

// verdict returns the error to be observed. It is false where the client is to blame.
func (e *exchange) verdict(res *http.Response, err error) (failed error, counts bool) {
	switch {
	case err != nil:
		return err, e.in.Context().Err() == nil && e.body.failure() == nil
	case res.StatusCode == http.StatusTooManyRequests, res.StatusCode >= 500 && res.StatusCode != http.StatusNotImplemented:
		return errAnswer, true
	}
	return nil, true
}

// begin takes w for the answer. Where the client has not sent the whole of its body yet,
// its connection ends with that: nobody knows how far into the body it will have come,
// and net/http cannot go on where a handler that answered while it read has left some.
func (e *exchange) begin() {
	e.hints.end()
	if _, all := e.body.sentAt(); !all && e.in.ProtoMajor == 1 {
		e.w.Header()["Connection"] = []string{"close"}
	}
	e.body.release()
}

// leave notes that the server is done with the request.
func (e *exchange) leave() {
	if e.server != nil {
		e.server.inFlight.Add(-1)
		e.server = nil
	}
}

// end is what comes after everything, be it a panic.
func (e *exchange) end() {
	e.body.end()
	e.leave()
	if e.cancel != nil {
		e.cancel(nil)
	}
}
