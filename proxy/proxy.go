// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/internal/ratelimitfields"
)

// A Proxy is a [http.Handler] that limits requests and sends those that are
// admitted on. It is made by [New] and safe for concurrent use. It keeps
// connections to the upstream until [Proxy.Close].
type Proxy struct {
	limit     *httplimit.Middleware
	limited   http.Handler // by limit: forward
	reverse   httputil.ReverseProxy
	transport *http.Transport
	upstream  url.URL
	config    Config
}

// New returns a proxy to upstream for the requests that mw admits. Both are
// required. The error names every mistake.
func New(upstream *url.URL, mw *httplimit.Middleware, config Config) (*Proxy, error) {
	errs := []error{checkUpstream(upstream), config.check()}
	if mw == nil {
		errs = append(errs, errors.New("middleware is required"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("proxy: new: %w", err)
	}
	p := &Proxy{limit: mw, upstream: *upstream, config: config.withDefaults()}
	p.transport = p.newTransport()
	p.reverse = httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		Transport:      p.transport,
		FlushInterval:  -1, // at once
		ErrorLog:       log.New(io.Discard, "", 0),
		BufferPool:     &bufferPool{},
		ModifyResponse: keepOwnFields,
		ErrorHandler:   p.answerError,
	}
	p.limited = mw.Wrap(http.HandlerFunc(p.forward))
	return p, nil
}

func (p *Proxy) newTransport() *http.Transport {
	return &http.Transport{
		DialContext:           (&net.Dialer{Timeout: p.config.DialTimeout}).DialContext,
		TLSHandshakeTimeout:   p.config.DialTimeout,
		ResponseHeaderTimeout: p.config.HeaderTimeout,
		IdleConnTimeout:       idleTimeout,
		MaxIdleConnsPerHost:   maxIdle,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true, // what is compressed is between client and upstream
	}
}

// ServeHTTP implements [http.Handler].
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !isPlain(r) {
		ratelimitfields.DisputedPath().Write(w, r)
		return
	}
	p.limited.ServeHTTP(w, withoutConnectionFields(resolved(r)))
}

// Close closes the connections that are not in use. The proxy can be used
// afterwards.
func (p *Proxy) Close() error {
	p.transport.CloseIdleConnections()
	return nil
}

// forward sends on a request that was admitted.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request) {
	if most := p.config.MaxBodyBytes; most > 0 {
		if r.ContentLength > most {
			p.answerError(w, r, &http.MaxBytesError{Limit: most})
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, most)
	}
	p.reverse.ServeHTTP(w, withOwnFields(w, r))
}

// bufferPool keeps the buffers through which bodies are copied.
type bufferPool struct{ pool sync.Pool }

// copyBytes is the size [io.Copy] uses.
const copyBytes = 32 << 10

func (b *bufferPool) Get() []byte {
	if kept, ok := b.pool.Get().(*[copyBytes]byte); ok {
		return kept[:]
	}
	return make([]byte, copyBytes)
}

func (b *bufferPool) Put(buf []byte) { b.pool.Put((*[copyBytes]byte)(buf)) }
