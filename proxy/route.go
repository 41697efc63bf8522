// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/requestpath"
)

// MaxRoutes is how many routes a [Proxy] may have, each host of one counted.
const MaxRoutes = 1000

// A Route says which requests go to an upstream. Of those that fit, the most specific
// one holds: one with the host before one with a wildcard, longer wildcards before
// shorter ones, any of them before one for every host; and then the longest path.
// A request that none fits is answered with 404.
//
// Host and path are read as rules read them (see package httplimit), so that no
// spelling brings a request to a server past the rule for it. One whose path or host
// servers read differently is answered with 400 where any route looks at it.
type Route struct {
	// Hosts are the names that are asked for: api.example.com; *.example.com is every
	// name that ends so, but not example.com. Case, ports and a dot at the end do not
	// matter. If empty, any.
	Hosts []string

	// Path is where what is asked for lies: /v1 is that and all below it, and not /v1x.
	// If empty, everything.
	Path string

	// Upstream names the upstream. It is required.
	Upstream string

	// MaxBodyBytes bounds the body of a request. If zero, as the [Config] says.
	MaxBodyBytes int64
}

// A destination is where a route leads.
type destination struct {
	upstream *upstream
	maxBody  int64 // 0: no bound
}

// A table finds routes. It does not change.
type table struct {
	hosts  map[string]paths // "api.example.com", "*.example.com", "" for any
	byHost bool             // there is one for a host
	byPath bool             // there is one for a path
}

// paths are the routes of a host, by path without a slash at its end.
type paths struct {
	to    map[string]*destination
	depth int // slashes in the longest
}

// newTable checks routes. The upstreams are known by name.
func newTable(routes []Route, upstreams map[string]*upstream, config Config) (*table, error) {
	t := &table{hosts: map[string]paths{}}
	var errs []error
	fail := func(i int, format string, args ...any) {
		errs = append(errs, fmt.Errorf("route %d: %w", i+1, fmt.Errorf(format, args...)))
	}
	count := 0
	for i := range routes {
		r := &routes[i]
		to := &destination{upstream: upstreams[r.Upstream], maxBody: r.MaxBodyBytes}
		if to.maxBody == 0 {
			to.maxBody = config.MaxBodyBytes
		}
		if to.upstream == nil {
			fail(i, "there is no upstream %q", r.Upstream)
		}
		if r.MaxBodyBytes < 0 {
			fail(i, "max body bytes must not be negative")
		}
		path, err := routePath(r.Path)
		if err != nil {
			fail(i, "%w", err)
		}
		hosts := r.Hosts
		if len(hosts) == 0 {
			hosts = []string{""}
		}
		for _, sent := range hosts {
			host, err := routeHost(sent, len(r.Hosts) > 0)
			if err != nil {
				fail(i, "%w", err)
			} else if !t.add(host, path, to) {
				fail(i, "never holds: an earlier one is for host %q and path %q, too", sent, r.Path)
			}
			count++
		}
	}
	if count > MaxRoutes {
		errs = append(errs, fmt.Errorf("%d routes: at most %d are allowed", count, MaxRoutes))
	}
	if len(routes) == 0 {
		errs = append(errs, errors.New("there is no route"))
	}
	return t, errors.Join(errs...)
}

// add reports whether there was no such route yet.
func (t *table) add(host, path string, to *destination) bool {
	p, known := t.hosts[host]
	if !known {
		p.to = map[string]*destination{}
	}
	if _, taken := p.to[path]; taken {
		return false
	}
	p.to[path] = to
	p.depth = max(p.depth, strings.Count(path, "/"))
	t.hosts[host] = p
	t.byHost = t.byHost || host != ""
	t.byPath = t.byPath || path != ""
	return true
}

// routePath returns a path as it is looked up.
func routePath(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	if read, disputed := requestpath.Decoded(path); disputed || read != path {
		return "", fmt.Errorf("path %q: no request is for it: it must begin with a slash and be spelled plainly, decoded and without %q, %q, %q and %q",
			path, "//", "..", ";", `\`)
	}
	if i := strings.IndexAny(path, "*?#"); i >= 0 {
		return "", fmt.Errorf("path %q: must be a plain one, without %q: what lies below it is meant, too", path, path[i])
	}
	return strings.TrimSuffix(path, "/"), nil
}

// routeHost returns a host as it is looked up.
func routeHost(sent string, required bool) (string, error) {
	if sent == "" && !required {
		return "", nil
	}
	name, isWildcard := strings.CutPrefix(sent, "*.")
	host, ok := httpfacts.Host(name)
	if !ok || strings.Contains(name, "*") || hasPort(name) {
		return "", fmt.Errorf("host %q: must be a name such as api.example.com or *.example.com, without a port", sent)
	}
	if isWildcard {
		return "*." + host, nil
	}
	return host, nil
}

func hasPort(name string) bool {
	return strings.Contains(name[strings.IndexByte(name, ']')+1:], ":")
}

// maxHostBytes is the length of the longest name there is in the DNS, and a bit. Longer
// ones are no host of a route: to look for their parents would be work without end.
const maxHostBytes = 256

// find returns where a request goes, nil for nowhere. It is false where servers read the
// path or the host of the request differently.
func (t *table) find(facts *httpfacts.Facts) (to *destination, ok bool) {
	if !t.byHost && !t.byPath {
		return t.hosts[""].to[""], true
	}
	path := ""
	if t.byPath {
		var disputed bool
		if path, disputed = facts.Place(); disputed {
			return nil, false
		}
	}
	if !t.byHost {
		return t.hosts[""].find(path), true
	}
	sent := facts.Request().Host
	host, isHost := httpfacts.Host(sent)
	if !isHost && sent != "" {
		return nil, false
	}
	if isHost && len(host) <= maxHostBytes {
		if to := t.findHost(host, path); to != nil {
			return to, true
		}
	}
	return t.hosts[""].find(path), true
}

// findHost looks among the routes of a host, and of the names it ends in.
func (t *table) findHost(host, path string) *destination {
	to := t.hosts[host].find(path)
	for to == nil {
		dot := strings.IndexByte(host, '.')
		if dot < 0 {
			return nil
		}
		to = t.hosts["*"+host[dot:]].find(path)
		host = host[dot+1:]
	}
	return to
}

// find returns the route with the longest path that path lies below. It looks no
// deeper than there are routes, whatever it is given.
func (p paths) find(path string) *destination {
	if p.to == nil {
		return nil
	}
	end, depth := 0, 0
	for end < len(path) && depth <= p.depth { // to the slash after the deepest route
		if path[end] == '/' {
			depth++
			if depth > p.depth {
				break
			}
		}
		end++
	}
	for path = strings.TrimSuffix(path[:end], "/"); ; {
		if to := p.to[path]; to != nil {
			return to
		}
		slash := strings.LastIndexByte(path, '/')
		if slash < 0 {
			return nil
		}
		path = path[:slash]
	}
}
