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
	"sync/atomic"
	"time"

	"github.com/metehq/mete/internal/httpfacts"
)

// An exchange forwards one admitted request to a server and its response back to the client. It is the transport
// of a [httputil.ReverseProxy], and picks the server. The responseWriter bounds how long the client may take.
//
// The exchange handles upgrades and informational responses itself. ReverseProxy loses data that a client sends
// before the upgrade, and a slow client would hold up the server's connection.
type exchange struct {
	proxy    *Proxy
	upstream *upstream
	w        http.ResponseWriter
	facts    *httpfacts.Facts
	in, out  *http.Request // the admitted request and the outgoing request
	url      url.URL       // of out
	fields   forwardedFields
	protocol string // upgrade protocol; "" for none
	body     requestBody
	server   *server // the server that handles the request
	cancel   context.CancelCauseFunc
	trace    httptrace.ClientTrace
	sent     atomic.Bool // a server may have the request

	hints      hints
	responding bool         // the response has begun
	response   responseBody // the server's response body
	discard    http.Header  // receives ReverseProxy's informational headers
}

var errStalled = errors.New("the response body stalled")

func newExchange(p *Proxy, u *upstream, w http.ResponseWriter, in *http.Request, facts *httpfacts.Facts) *exchange {
	e := &exchange{proxy: p, upstream: u, w: w, facts: facts, in: in}
	e.trace.Got1xxResponse = e.queueHint
	e.trace.GotConn = e.noteConnection
	e.protocol = p.upgradeProtocol(in)
	return e
}

func (e *exchange) noteConnection(httptrace.GotConnInfo) { e.sent.Store(true) }

func (e *exchange) run() {
	ctx := e.in.Context()
	if e.upstream.stall > 0 {
		ctx, e.cancel = context.WithCancelCause(ctx)
	}
	e.out = e.in.WithContext(httptrace.WithClientTrace(ctx, &e.trace)) // a shallow copy
	e.out.Header, e.out.Trailer, e.out.URL = nil, nil, &e.url          // rewrite sets them
	if e.out.Body = nil; e.body.from != nil {
		e.out.Body = &e.body
	}
	reverse := httputil.ReverseProxy{
		Rewrite:        e.rewrite,
		Transport:      e,
		ModifyResponse: e.forwardResponse,
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			if !errors.Is(err, errResponseForwarded) {
				e.fail(err)
			}
		},
		BufferPool: &e.proxy.buffers,
		ErrorLog:   discardLog,
	}
	reverse.ServeHTTP(responseWriter{e}, e.out)
}

// discardLog discards the log of ReverseProxy: [Config.OnError] receives errors.
var discardLog = log.New(io.Discard, "", 0)

// rewrite builds the outgoing request. The body stays open between two attempts.
func (e *exchange) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL, r.Out.Header = &e.url, e.outHeader()
	if e.body.from != nil {
		r.Out.Body, r.Out.Trailer = &e.body, e.body.trailer
	}
}

// RoundTrip implements [http.RoundTripper]. It sends the request to a server, and to another one if the first
// could not be reached.
func (e *exchange) RoundTrip(out *http.Request) (*http.Response, error) {
	e.out = out
	res, err := e.send()
	if err != nil {
		return nil, err
	}
	if res.StatusCode < 200 && res.StatusCode != http.StatusSwitchingProtocols || res.StatusCode > 999 { // net/http rejects these
		res.Body.Close()
		return nil, fmt.Errorf("the server returned status %d", res.StatusCode)
	}
	return res, nil
}

func (e *exchange) send() (*http.Response, error) {
	var (
		not triedServers
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
			e.out = e.out.WithContext(e.out.Context()) // the last attempt may still use its own context
			e.out.URL = new(url.URL)
		}
		var res *http.Response
		if res, err = e.sendTo(s); err == nil {
			return res, nil
		}
		if _, counts := e.classify(nil, err); counts {
			s.errors.Add(1)
		}
		if _, unsent := errors.AsType[*dialError](err); !unsent || e.body.read.Load() || e.in.Context().Err() != nil {
			return nil, err
		}
	}
}

func (e *exchange) sendTo(s *server) (*http.Response, error) {
	e.releaseServer()
	e.server = s
	s.inFlight.Add(1)
	e.setTarget(s)
	transport := e.transport(s)
	observe := e.proxy.config.Observe
	if observe == nil {
		res, err := transport.RoundTrip(e.out)
		if err == nil {
			s.countResponse(res.StatusCode)
		}
		return res, err
	}
	begin := time.Now()
	res, err := transport.RoundTrip(e.out)
	if err == nil {
		s.countResponse(res.StatusCode)
	}
	now := time.Now()
	if failed, counts := e.classify(res, err); counts {
		if sent, ok := e.body.sentAt(); ok && sent.After(begin) {
			begin = sent // until then the client was still sending
		} else if !ok && failed == nil {
			return res, err // early response: the latency is meaningless
		}
		observe(now.Sub(begin), failed)
	}
	return res, err
}

// transport returns the transport to s. It removes the upgrade request if the server cannot upgrade connections:
// HTTP/2 rejects such requests.
func (e *exchange) transport(s *server) *http.Transport {
	switch {
	case e.protocol == "":
		return s.transport
	case s.upgrades != nil:
		return s.upgrades
	}
	e.protocol = ""
	e.out.Header = maps.Clone(e.out.Header) // the last attempt may still use its own header
	delete(e.out.Header, "Connection")
	delete(e.out.Header, "Upgrade")
	return s.transport
}

// errBadStatus is observed for a status that means that the server is in trouble.
var errBadStatus = errors.New("proxy: the upstream returned an error status")

// classify returns the error to observe. It returns false if the client is to blame.
func (e *exchange) classify(res *http.Response, err error) (failed error, counts bool) {
	switch {
	case err != nil:
		return err, e.in.Context().Err() == nil && e.body.failure() == nil
	case res.StatusCode == http.StatusTooManyRequests, res.StatusCode >= 500 && res.StatusCode != http.StatusNotImplemented:
		return errBadStatus, true
	}
	return nil, true
}

// beginResponse takes over w for the response. While the client is still sending its body, the connection closes
// after the response. net/http cannot reuse a connection after a handler responded before the end of the body.
func (e *exchange) beginResponse() {
	e.hints.end()
	e.responding = true
	if _, all := e.body.sentAt(); !all && e.in.ProtoMajor == 1 {
		e.w.Header()["Connection"] = []string{"close"}
	}
	e.body.release()
}

func (e *exchange) releaseServer() {
	if e.server != nil {
		e.server.inFlight.Add(-1)
		e.server = nil
	}
}

// close releases everything that the exchange uses, also after a panic.
func (e *exchange) close() {
	e.body.end()
	e.releaseServer()
	if e.cancel != nil {
		e.cancel(nil)
	}
}
