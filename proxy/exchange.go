// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/metehq/mete/internal/httpfacts"
)

// An exchange is one request that was admitted, on its way to a server and back.
// [httputil.ReverseProxy] carries it. The exchange is its transport, which picks the
// server, and answerWriter is its response writer, which bounds how long a client takes.
// Upgraded connections and informational answers are ours: ReverseProxy loses what a client
// sends before the upgrade, and a slow client would hold up the server's connection.
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

	hints    hints
	answered bool        // the answer of the server, or of the proxy, has begun
	answer   answerBody  // of the server
	discard  http.Header // of informational answers that ReverseProxy writes
}

// errStalled is the cause of the end of a request whose answer has stood still.
var errStalled = errors.New("the body of the answer stood still")

func newExchange(p *Proxy, u *upstream, w http.ResponseWriter, facts *httpfacts.Facts) *exchange {
	in := facts.Request()
	e := &exchange{proxy: p, upstream: u, w: w, facts: facts, in: in}
	e.trace.Got1xxResponse = e.inform
	e.protocol = p.protocolOf(in)
	return e
}

// pass sends the request on and the answer back.
func (e *exchange) pass() {
	ctx := e.in.Context()
	if e.upstream.stall > 0 {
		ctx, e.cancel = context.WithCancelCause(ctx)
	}
	e.out = e.in.WithContext(httptrace.WithClientTrace(ctx, &e.trace)) // a shallow copy
	e.out.Header, e.out.Trailer, e.out.URL = nil, nil, &e.url          // rewrite says them
	if e.out.Body = nil; e.body.from != nil {
		e.out.Body = &e.body
	}
	reverse := httputil.ReverseProxy{
		Rewrite:        e.rewrite,
		Transport:      e,
		ModifyResponse: e.take,
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			if !errors.Is(err, errTaken) {
				e.fail(err)
			}
		},
		BufferPool: &e.proxy.buffers,
		ErrorLog:   noLog,
	}
	reverse.ServeHTTP(answerWriter{e}, e.out)
}

// noLog is the log of ReverseProxy: [Config.OnError] is told of errors.
var noLog = log.New(io.Discard, "", 0)

// rewrite makes the request that is sent on. The body stays open between two tries.
func (e *exchange) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL, r.Out.Header = &e.url, e.outHeader()
	if e.body.from != nil {
		r.Out.Body, r.Out.Trailer = &e.body, e.body.trailer
	}
}

// RoundTrip implements [http.RoundTripper]. It sends the request to a server, and to
// another one where it could not be sent.
func (e *exchange) RoundTrip(out *http.Request) (*http.Response, error) {
	e.out = out
	res, err := e.send()
	if err != nil {
		return nil, err
	}
	if res.StatusCode < 200 && res.StatusCode != http.StatusSwitchingProtocols || res.StatusCode > 999 { // which net/http would not let pass
		res.Body.Close()
		return nil, fmt.Errorf("the server answers with status %d", res.StatusCode)
	}
	return res, nil
}

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
	e.answered = true
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
