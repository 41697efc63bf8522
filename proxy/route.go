// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/requestpath"
)

// MaxRoutes is the maximum number of routes of a [Proxy]. Each host of a route counts.
const MaxRoutes = 1000

// A Route sends matching requests to an upstream. The most specific match wins. An exact host comes before a
// wildcard, a longer wildcard before a shorter one, and any host before routes for all hosts. Then the longest
// path wins. A request without a match gets a 404.
//
// The proxy reads host and path exactly as rules do (see package httplimit), so no spelling can bypass a rule. If
// servers interpret the path or host differently and any route depends on it, the request gets a 400.
type Route struct {
	// Hosts are host names such as api.example.com. *.example.com matches every subdomain of example.com, but not
	// example.com itself. Case, ports and a final dot do not matter. An empty list matches every host.
	Hosts []string

	// Path matches itself and everything below it: /v1 matches /v1/x, but not /v1x. Empty matches every path.
	Path string

	// Upstream is the name of the upstream. It is required.
	Upstream string

	// MaxBodyBytes bounds the size of a request body. Zero means [Config.MaxBodyBytes].
	MaxBodyBytes int64
}

type destination struct {
	upstream *upstream
	maxBody  int64 // 0: no bound
}

// A table finds the route of a request. It is immutable.
type table struct {
	hosts  map[string]paths // "api.example.com", "*.example.com", "" for any
	byHost bool             // at least one route has a host
	byPath bool             // at least one route has a path
}

// paths holds the routes of one host by path, without the final slash.
type paths struct {
	to    map[string]*destination
	depth int // the most slashes in a path
}

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
			fail(i, "unknown upstream %q", r.Upstream)
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
				fail(i, "never matches: an earlier route has the same host %q and path %q", sent, r.Path)
			}
			count++
		}
	}
	if count > MaxRoutes {
		errs = append(errs, fmt.Errorf("%d routes: at most %d are allowed", count, MaxRoutes))
	}
	if len(routes) == 0 {
		errs = append(errs, errors.New("at least one route is required"))
	}
	return t, errors.Join(errs...)
}

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

func routePath(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	if read, disputed := requestpath.ParseDecoded(path); disputed || read != path {
		return "", fmt.Errorf("path %q: matches no request: must start with a slash, be decoded, and not contain %q, %q, %q or %q",
			path, "//", "..", ";", `\`)
	}
	if i := strings.IndexAny(path, "*?#"); i >= 0 {
		return "", fmt.Errorf("path %q: must not contain %q: a path already matches everything below it", path, path[i])
	}
	return strings.TrimSuffix(path, "/"), nil
}

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

// maxHostBytes bounds the hosts that are looked up. It is slightly above the longest DNS name. A longer host
// matches no route with a host; looking for its parents could take forever.
const maxHostBytes = 256

// find returns the destination of a request, or nil. It returns false if servers interpret the path or the host
// of the request differently.
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

// find returns the destination with the longest path that contains path. The work is bounded by the depth of the
// routes, whatever the path.
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
