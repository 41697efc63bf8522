// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

func (c *nginxConfig) server(d *directive, from nginxLevel) error {
	level, err := c.level(d.block, from)
	if err != nil {
		return err
	}
	s := &nginxServer{at: d}
	for _, listen := range find(d.block, "listen") {
		s.fallback = s.fallback || slices.Contains(listen.args, "default_server")
	}
	for _, names := range find(d.block, "server_name") {
		for _, name := range names.args {
			s.first = cmp.Or(s.first, name)
			c.addServerName(s, names, name)
		}
	}
	if len(find(d.block, "return")) > 0 {
		c.Differ(d.position(), "The server answers all requests with return, before any limit_req.", "The policy has no rule for this server alone.", "")
		return nil
	}
	s.locations = append(s.locations, location{value: c.addValue(level)})
	if err := c.locations(s, d.block, level); err != nil {
		return err
	}
	s.addRedirects()
	c.servers = append(c.servers, s)
	return nil
}

// addRedirects adds the paths that only lack the slash at the end of a proxied location. nginx redirects them
// before it applies limits.
func (s *nginxServer) addRedirects() {
	for _, l := range slices.Clone(s.locations) {
		path, slash := strings.CutSuffix(l.path, "/")
		known := slices.ContainsFunc(s.locations, func(other location) bool {
			return other.path == path && (other.kind == locationPrefix || other.kind == locationExact)
		})
		if l.proxied && slash && path != "" && !known {
			s.locations = append(s.locations, location{kind: locationExact, path: path, value: unlimited})
		}
	}
}

// unlimited is the value of a location without limits.
const unlimited = -1

// isProxied reports whether nginx forwards the requests of a location to another server.
func isProxied(block []*directive) bool {
	return slices.ContainsFunc(block, func(d *directive) bool {
		return slices.Contains([]string{"proxy_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "memcached_pass", "grpc_pass"}, d.name)
	})
}

func (c *nginxConfig) addValue(level nginxLevel) int {
	c.levels = append(c.levels, level.limits)
	return len(c.levels) - 1
}

func (c *nginxConfig) addServerName(s *nginxServer, d *directive, name string) {
	switch {
	case name == "_" || name == "":
	case strings.HasPrefix(name, "~") || strings.HasPrefix(name, "*.") || strings.HasPrefix(name, "."):
		c.Differ(d.position(), fmt.Sprintf("The server name %s is a pattern.", name), "The policy leaves the pattern out, because nginx prefers the exact names of other servers.",
			`List the hosts in the selector, or write "*.example.com" if no other server has such a name.`)
		if strings.HasPrefix(name, ".") {
			s.names = append(s.names, strings.ToLower(name[1:]))
		}
	default:
		s.names = append(s.names, strings.ToLower(name))
	}
}

func (c *nginxConfig) locations(s *nginxServer, block []*directive, from nginxLevel) error {
	for _, d := range find(block, "location") {
		level, err := c.level(d.block, from)
		if err != nil {
			return err
		}
		if len(find(d.block, "return")) > 0 {
			level.limits = nil // return runs before limit_req
		}
		l, ok := c.location(d, level)
		if ok {
			l.value = c.addValue(level)
		}
		switch {
		case ok && l.kind == locationPrefix && l.path == "/": // all paths
			l.path = ""
			s.locations[0] = l
		case ok:
			s.locations = append(s.locations, l)
		}
		if err := c.locations(s, d.block, level); err != nil {
			return err
		}
	}
	return nil
}

func (c *nginxConfig) location(d *directive, level nginxLevel) (l location, ok bool) {
	modifier, path := "", ""
	switch len(d.args) {
	case 1:
		path = d.args[0]
		for _, m := range []string{"~*", "^~", "~", "="} {
			if rest, found := strings.CutPrefix(path, m); found {
				modifier, path = m, rest
				break
			}
		}
	case 2:
		modifier, path = d.args[0], d.args[1]
	}
	switch modifier {
	case "", "^~", "=":
		if !strings.HasPrefix(path, "/") { // internal redirects only (@name)
			if len(find(d.block, "limit_req")) > 0 {
				c.Differ(d.position(), fmt.Sprintf("Only internal redirects lead to location %s.", path), "The policy has no rule for its limit_req alone.", "")
			}
			return l, false
		}
		l = location{path: path, first: modifier == "^~", proxied: isProxied(d.block)}
		if modifier == "=" {
			l.kind = locationExact
		}
		return l, true
	}
	literal, exact, ok := literalRegexp(path)
	if ok && strings.HasPrefix(literal, "/") && (modifier == "~" || strings.ToLower(literal) == strings.ToUpper(literal)) {
		l = location{path: literal, kind: locationRegexPrefix}
		if exact {
			l.kind = locationRegexExact
		}
		return l, true
	}
	effect := "The policy limits these requests like the longest other location that they begin with."
	if len(level.limits) > 0 {
		effect += " It has no rule for the limit_req of this location alone."
	}
	c.Differ(d.position(), fmt.Sprintf("The policy language has no regular expressions, so location %s is left out.", strings.Join(d.args, " ")),
		effect, "Write the paths as a list, or as how they begin.")
	return l, false
}

// chooseFallback selects the server for hosts without a server: the default_server or the first one. It reports
// servers that mete cannot tell apart.
func (c *nginxConfig) chooseFallback() {
	seen := map[string]bool{}
	for _, s := range c.servers {
		for _, name := range s.names {
			if seen[name] {
				c.Differ(s.at.position(), fmt.Sprintf("Another server has the name %s, on another port or address.", name),
					"mete does not match ports, so the rules of both servers apply to this host.", "Leave the rules of one of them out.")
			}
			seen[name] = true
		}
	}
	if len(c.servers) > 0 && !slices.ContainsFunc(c.servers, func(s *nginxServer) bool { return s.fallback }) {
		c.servers[0].fallback = true
	}
}

// A nginxSpread is a set of hosts and paths of a limit, for one rule.
type nginxSpread struct {
	hosts any // host clause; nil for none
	shape pathShape
}

// spreads returns the hosts and paths of a limit. Servers with equal paths share a rule.
func (c *nginxConfig) spreads(l nginxLimit) (spreads []nginxSpread) {
	type group struct {
		shape   pathShape
		key     string
		servers []*nginxServer
	}
	var groups []*group
	for _, s := range c.servers {
		if c.isUncounted(l, s) {
			continue
		}
		set := resolve(s.locations, func(value int) bool { return value != unlimited && slices.Contains(c.levels[value], l) })
		for _, shape := range set.shapes() {
			key := fmt.Sprint(shape.match, shape.within)
			if shape.within != nil {
				key = fmt.Sprint(shape.match, *shape.within)
			}
			i := slices.IndexFunc(groups, func(g *group) bool { return g.key == key })
			if i < 0 {
				i = len(groups)
				groups = append(groups, &group{shape: shape, key: key})
			}
			groups[i].servers = append(groups[i].servers, s)
		}
	}
	for _, g := range groups {
		spreads = append(spreads, nginxSpread{c.hosts(g.servers), g.shape})
	}
	return spreads
}

// isUncounted reports whether a zone's key is empty in a server. nginx does not count such requests.
func (c *nginxConfig) isUncounted(l nginxLimit, s *nginxServer) bool {
	return s.first == "" && c.zones[l.zone].key == "$server_name"
}

// constantKey returns a zone's key. It replaces $server_name by a constant if only one server name has the limit.
func (c *nginxConfig) constantKey(l nginxLimit) string {
	names := map[string]bool{}
	for _, s := range c.servers {
		if slices.ContainsFunc(s.locations, func(at location) bool { return at.value != unlimited && slices.Contains(c.levels[at.value], l) }) {
			names[s.first] = true
		}
	}
	key := c.zones[l.zone].key
	if len(names) > 1 {
		return key
	}
	for name := range names {
		key = strings.ReplaceAll(key, "$server_name", strings.ReplaceAll(name, "$", ""))
	}
	return key
}

// hosts returns the host clause for servers, or nil if they serve all hosts.
func (c *nginxConfig) hosts(servers []*nginxServer) any {
	var names, others []string
	fallback := false
	for _, s := range c.servers {
		if slices.Contains(servers, s) {
			names, fallback = append(names, s.names...), fallback || s.fallback
		} else {
			others = append(others, s.names...)
		}
	}
	others = slices.DeleteFunc(others, func(name string) bool { return slices.Contains(names, name) })
	slices.Sort(names)
	names = slices.Compact(names)
	switch {
	case fallback && len(others) == 0:
		return nil
	case fallback:
		return Not(others...)
	case len(names) == 0:
		c.Differ(servers[0].at.position(), "The server has no name that mete can match.", "The rules of this server apply to all hosts.", "Add a clause host to these rules.")
		return nil
	}
	return oneOrMore(names)
}
