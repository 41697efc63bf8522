// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/ratelimitfields"
)

// A Proxy is an [http.Handler] that limits requests and forwards the admitted ones. Create one with [New] or
// [NewRouted]. It is safe for concurrent use and keeps connections to the upstreams until [Proxy.Close].
type Proxy struct {
	limit     *httplimit.Middleware
	source    *httpfacts.Source // of limit
	upstreams []*upstream
	routes    *table
	config    Config
	buffers   buffers
	tunnels   tunnels
}

// New returns a proxy that forwards the requests that mw admits to upstream. Both are required. The returned
// error lists every invalid setting.
func New(upstream *url.URL, mw *httplimit.Middleware, config Config) (*Proxy, error) {
	errs := []error{checkServer(upstream), checkRest(mw, config)}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("proxy: new: %w", err)
	}
	const name = "upstream"
	return build([]Upstream{{Name: name, Servers: []*url.URL{upstream}}}, []Route{{Upstream: name}}, mw, config)
}

// NewRouted returns a proxy that forwards the requests that mw admits to the upstream of the most specific
// matching route. Every upstream needs a unique name and at least one route. mw is required. The returned error
// lists every invalid setting.
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

// CheckRoutes reports every error in routes and in the names of upstreams, as [NewRouted] does. It is for
// programs that validate settings.
func CheckRoutes(upstreams []Upstream, routes []Route) error {
	var errs []error
	byName, unused := map[string]*upstream{}, map[string]bool{}
	for i := range upstreams {
		name := upstreams[i].Name
		if byName[name] != nil {
			errs = append(errs, fmt.Errorf("upstream %q: duplicate name", name))
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
			errs = append(errs, fmt.Errorf("upstream %q: no route uses it", name))
			delete(unused, name)
		}
	}
	return errors.Join(errs...)
}

func checkRest(mw *httplimit.Middleware, config Config) error {
	err := config.validate()
	if mw == nil {
		err = errors.Join(err, errors.New("middleware is required"))
	}
	return err
}

// build creates a proxy from settings that were checked, except the routes, which it checks.
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
		// The request may have had a Transfer-Encoding, which net/http drops from HTTP/1.0 without reading the
		// body. The rest of the connection must not be read as another request (RFC 9112, section 6.1).
		w.Header()["Connection"] = []string{"close"}
	}
	if refusal := p.rejectReason(r); refusal != "" {
		p.limit.WriteProblem(w, r, ratelimitfields.NewAmbiguousProblem(refusal))
		return
	}
	facts := p.source.Facts(r)
	defer facts.Release()
	defer func() { httpfacts.FreeBody(facts.Request()) }()
	if p.config.UnderscoresInHeaders == passUnderscores {
		if _, odd := findOddName(r); odd {
			facts.DisputeLookAlikes()
		}
	}
	facts.Resolve()
	p.removeUnsent(facts)
	admission, ok := p.admit(w, facts)
	switch {
	case !ok:
	case admission == nil: // without a closure
		p.forwardRequest(w, facts.Request(), facts)
	default:
		admission.Serve(w, facts.Request(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.forwardRequest(w, r, facts) }))
	}
}

// admit decides the request. A rule may read its body, and each read has the deadline of a forwarded body.
func (p *Proxy) admit(w http.ResponseWriter, facts *httpfacts.Facts) (*httplimit.Admission, bool) {
	if most := p.config.ClientTimeout; most > 0 && facts.Request().ContentLength != 0 && p.limit.ReadsBodies() {
		control := http.NewResponseController(w)
		facts.BeforeRead(func() { _ = control.SetReadDeadline(time.Now().Add(most)) })
		defer func() {
			if !facts.BodyFailed() { // otherwise net/http would wait for the rest of the body
				_ = control.SetReadDeadline(time.Time{})
			}
		}()
	}
	return p.limit.AdmitFacts(w, facts)
}

// Close closes idle connections to upstreams. The proxy remains usable.
func (p *Proxy) Close() error {
	for _, u := range p.upstreams {
		for _, s := range u.servers {
			s.closeIdle()
		}
	}
	return nil
}

// forwardRequest forwards r. It is the request of facts, perhaps with another context.
func (p *Proxy) forwardRequest(w http.ResponseWriter, r *http.Request, facts *httpfacts.Facts) {
	to, ok := p.routes.find(facts)
	switch {
	case !ok:
		p.limit.WriteProblem(w, r, ratelimitfields.NewAmbiguousProblem(httpfacts.AmbiguousTarget))
		return
	case to == nil:
		p.limit.WriteProblem(w, r, noRoute)
		return
	case to.maxBody > 0 && r.ContentLength > to.maxBody:
		p.limit.WriteProblem(w, r, tooLarge)
		return
	}
	e := newExchange(p, to.upstream, w, r, facts)
	defer e.close()
	if r.ContentLength != 0 {
		e.prepareBody(to.maxBody)
	}
	e.run()
}

const copyBytes = 32 << 10

// buffers is a pool of copy buffers for bodies. It implements [httputil.BufferPool].
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if kept, ok := b.pool.Get().(*[copyBytes]byte); ok {
		return kept[:]
	}
	return make([]byte, copyBytes)
}

func (b *buffers) Put(space []byte) { b.pool.Put((*[copyBytes]byte)(space)) }
