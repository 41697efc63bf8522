// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/ratelimitfields"
)

// A Proxy is a [http.Handler] that limits requests and sends those that are
// admitted on. It is made by [New] or [NewRouted] and safe for concurrent use. It keeps
// connections to the upstreams until [Proxy.Close].
type Proxy struct {
	limit     *httplimit.Middleware
	source    *httpfacts.Source // of limit
	upstreams []*upstream
	routes    *table
	config    Config
	buffers   buffers
	tunnels   tunnels
}

// New returns a proxy to upstream for the requests that mw admits. Both are
// required. The error names every mistake.
func New(upstream *url.URL, mw *httplimit.Middleware, config Config) (*Proxy, error) {
	errs := []error{checkServer(upstream), checkRest(mw, config)}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("proxy: new: %w", err)
	}
	const name = "upstream"
	return build([]Upstream{{Name: name, Servers: []*url.URL{upstream}}}, []Route{{Upstream: name}}, mw, config)
}

// NewRouted returns a proxy to several upstreams for the requests that mw admits: each
// goes where the most specific route leads. Every upstream has a name of its own and
// a route. mw is required. The error names every mistake.
func NewRouted(upstreams []Upstream, routes []Route, mw *httplimit.Middleware, config Config) (*Proxy, error) {
	errs := []error{checkRest(mw, config)}
	for i := range upstreams {
		errs = append(errs, upstreams[i].Check())
	}
	errs = append(errs, CheckRoutes(upstreams, routes))
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("proxy: new: %w", err)
	}
	return build(upstreams, routes, mw, config)
}

// CheckRoutes reports every mistake in routes, and in how upstreams are named, as
// [NewRouted] does; it is for those who read settings.
func CheckRoutes(upstreams []Upstream, routes []Route) error {
	var errs []error
	byName, unused := map[string]*upstream{}, map[string]bool{}
	for i := range upstreams {
		name := upstreams[i].Name
		if byName[name] != nil {
			errs = append(errs, fmt.Errorf("upstream %q: the name is taken by an earlier one", name))
		}
		byName[name], unused[name] = &upstream{}, true
	}
	_, err := newTable(routes, byName, Config{})
	errs = append(errs, err)
	for i := range routes {
		delete(unused, routes[i].Upstream)
	}
	for i := range upstreams {
		if name := upstreams[i].Name; unused[name] {
			errs = append(errs, fmt.Errorf("upstream %q: no route leads there", name))
			delete(unused, name)
		}
	}
	return errors.Join(errs...)
}

func checkRest(mw *httplimit.Middleware, config Config) error {
	err := config.check()
	if mw == nil {
		err = errors.Join(err, errors.New("middleware is required"))
	}
	return err
}

// build makes a proxy of what has been checked, but for the routes.
func build(upstreams []Upstream, routes []Route, mw *httplimit.Middleware, config Config) (*Proxy, error) {
	p := &Proxy{limit: mw, source: mw.Source(), config: config.withDefaults()}
	byName := map[string]*upstream{}
	for _, u := range upstreams {
		made := newUpstream(u, p.config)
		p.upstreams = append(p.upstreams, made)
		byName[u.Name] = made
	}
	var err error
	if p.routes, err = newTable(routes, byName, p.config); err != nil {
		return nil, fmt.Errorf("proxy: new: %w", err)
	}
	return p, nil
}

// ServeHTTP implements [http.Handler].
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 && !r.ProtoAtLeast(1, 1) {
		// It may have come with a Transfer-Encoding, which net/http drops unread from
		// HTTP/1.0: nothing that follows is to be taken for a request (RFC 9112, 6.1).
		w.Header()["Connection"] = []string{"close"}
	}
	if refusal := p.refusal(r); refusal != "" {
		ratelimitfields.Write(w, r, ratelimitfields.Disputed(refusal))
		return
	}
	facts := p.source.Facts(r)
	defer facts.Release()
	if p.config.UnderscoresInHeaders == passUnderscores {
		if _, odd := oddName(r); odd {
			facts.DisputeLookAlikes()
		}
	}
	facts.Resolve()
	p.removeUnsent(facts)
	if p.limit.AdmitFacts(w, facts) {
		p.forward(w, facts)
	}
}

// Close closes the connections to upstreams that are not in use. The proxy can be used
// afterwards.
func (p *Proxy) Close() error {
	for _, u := range p.upstreams {
		for _, s := range u.servers {
			s.closeIdle()
		}
	}
	return nil
}

// forward sends on a request that was admitted.
func (p *Proxy) forward(w http.ResponseWriter, facts *httpfacts.Facts) {
	r := facts.Request()
	to, ok := p.routes.find(facts)
	switch {
	case !ok:
		ratelimitfields.Write(w, r, ratelimitfields.Disputed(httpfacts.DisputedPlace))
		return
	case to == nil:
		ratelimitfields.Write(w, r, noRoute)
		return
	case to.maxBody > 0 && r.ContentLength > to.maxBody:
		ratelimitfields.Write(w, r, tooLarge)
		return
	}
	e := newExchange(p, to.upstream, w, facts)
	defer e.end()
	if r.ContentLength != 0 {
		e.takeBody(to.maxBody)
	}
	e.pass()
}

// copyBytes is the size that [io.Copy] uses.
const copyBytes = 32 << 10

// buffers are the space that bodies are copied through. They implement
// [httputil.BufferPool].
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if kept, ok := b.pool.Get().(*[copyBytes]byte); ok {
		return kept[:]
	}
	return make([]byte, copyBytes)
}

func (b *buffers) Put(space []byte) { b.pool.Put((*[copyBytes]byte)(space)) }
