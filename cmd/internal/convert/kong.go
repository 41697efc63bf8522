// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

var kongReader = reader{"kong", "a declarative configuration of Kong in YAML or JSON", detectKong, readKong}

var kongShape = regexp.MustCompile(`(?m)^\s*"?_format_version"?\s*:`)

func detectKong(data []byte) bool { return kongShape.Match(data) }

// The attributes of consumers: the header fields that Kong sets for upstreams.
const (
	kongConsumer   = "header:x-consumer-username"
	kongCredential = "header:x-credential-identifier"
)

// kongWindows are the periods of rate-limiting in ascending order. Months and years follow the calendar in UTC.
var kongWindows = []struct{ name, window string }{
	{"second", "1s"}, {"minute", "1m"}, {"hour", "1h"}, {"day", "1d"}, {"month", "month"}, {"year", "year"},
}

type kongFile struct {
	Result
	services, routes map[string]node // by name and ID
	routesOf         map[string][]node
}

// A kongPlugin is a rate limit with its scope. Absent nodes do not restrict the scope.
type kongPlugin struct {
	node           node
	route, service node
	consumer       string
	limits         []map[string]any
	rule           Rule
}

func readKong(file string, data []byte) (Result, error) {
	d, err := parseDocument(file, data)
	if err != nil {
		return Result{}, err
	}
	f := kongFile{services: map[string]node{}, routes: map[string]node{}, routesOf: map[string][]node{}}
	plugins := f.collect(d.top())
	f.Recognize(len(d.top().field("services").items()), "service")
	routes := len(d.top().field("routes").items())
	for _, s := range d.top().field("services").items() {
		routes += len(s.field("routes").items())
	}
	f.Recognize(routes, "route")
	f.Recognize(len(plugins), "rate limit")
	var ready []kongPlugin
	for _, p := range plugins {
		if bad := f.readLimits(&p); bad != nil {
			bad.Recognized = f.Recognized
			return Result{}, bad
		}
		if f.setScope(&p) {
			ready = append(ready, p)
		}
	}
	slices.SortStableFunc(ready, func(a, b kongPlugin) int { return b.rank() - a.rank() })
	for _, p := range ready {
		f.addRules(p)
	}
	if err := f.dropUnreachable(); err != nil {
		return Result{}, err
	}
	if len(ready) > 1 {
		f.Differ(file, "Kong sends a request to one route, and runs the most specific plugin of each name.",
			"In mete, plugins of one name are tiers: consumers first, then routes with longer paths, then services.", "")
	}
	return f.Result, nil
}

func (f *kongFile) collect(top node) (all []kongPlugin) {
	add := func(n node, p kongPlugin) {
		for _, plugin := range n.items() {
			p.node = plugin
			switch name := plugin.field("name").text(); {
			case name == "rate-limiting" || name == "rate-limiting-advanced":
				all = append(all, p)
			case strings.Contains(name, "ratelimit") || strings.Contains(name, "rate-limit"):
				f.Differ(plugin.position(), fmt.Sprintf("The plugin %s limits requests.", name), "mete has no rule for it.", "")
			}
		}
	}
	remember := func(index map[string]node, n node) {
		for _, field := range []string{"name", "id"} {
			if text := n.field(field).text(); text != "" {
				index[text] = n
			}
		}
	}
	for _, service := range top.field("services").items() {
		remember(f.services, service)
		add(service.field("plugins"), kongPlugin{service: service})
		for _, route := range service.field("routes").items() {
			remember(f.routes, route)
			f.routesOf[service.path] = append(f.routesOf[service.path], route)
			add(route.field("plugins"), kongPlugin{route: route})
		}
	}
	for _, route := range top.field("routes").items() {
		remember(f.routes, route)
		if service, ok := f.services[reference(route.field("service"))]; ok {
			f.routesOf[service.path] = append(f.routesOf[service.path], route)
		}
		add(route.field("plugins"), kongPlugin{route: route})
	}
	for _, consumer := range top.field("consumers").items() {
		add(consumer.field("plugins"), kongPlugin{consumer: consumer.name("")})
	}
	for _, group := range top.field("consumer_groups").items() {
		for _, plugin := range group.field("plugins").items() {
			f.Differ(plugin.position(), fmt.Sprintf("The plugin %s applies to the consumer group %s.", plugin.field("name").text(), group.name("")), "mete has no rule for it.",
				"Write a rule with a match on an attribute that names the group.")
		}
	}
	for _, plugin := range top.field("plugins").items() {
		add(plugin, kongPlugin{
			service: f.services[reference(plugin.field("service"))], route: f.routes[reference(plugin.field("route"))],
			consumer: reference(plugin.field("consumer")),
		})
	}
	return all
}

func reference(n node) string {
	if text := n.text(); text != "" {
		return text
	}
	return n.name("")
}

// rank returns the precedence of a plugin. Kong runs only the most specific plugin of each name.
func (p kongPlugin) rank() int {
	rank := 0
	switch bounds := [3]bool{p.consumer != "", p.route.exists, p.service.exists}; bounds {
	case [3]bool{true, true, true}:
		rank = 7
	case [3]bool{true, true, false}:
		rank = 6
	case [3]bool{true, false, true}:
		rank = 5
	case [3]bool{false, true, true}:
		rank = 4
	case [3]bool{true, false, false}:
		rank = 3
	case [3]bool{false, true, false}:
		rank = 2
	case [3]bool{false, false, true}:
		rank = 1
	}
	longest := 0
	for _, path := range valuesOf(p.rule.Match["path"]) {
		longest = max(longest, len(path))
	}
	const maxPath = 1 << 16
	return rank*maxPath + min(longest, maxPath-1)
}

func (f *kongFile) readLimits(p *kongPlugin) *Error {
	config := p.node.field("config")
	if p.node.field("name").text() == "rate-limiting-advanced" {
		return f.readAdvanced(p, config)
	}
	for _, w := range kongWindows {
		n := config.field(w.name)
		if !n.exists {
			continue
		}
		tokens, err := n.number()
		if err != nil {
			return err
		}
		if tokens == 0 {
			return n.fail("%s: want a number above 0 (got 0)", w.name)
		}
		limit := map[string]any{"name": w.name, "algorithm": "fixed_window", "tokens": tokens, "window": w.window}
		if w.name == w.window { // a calendar
			limit["timezone"] = "UTC"
		}
		p.limits = append(p.limits, limit)
	}
	if len(p.limits) == 0 {
		return p.node.fail("the plugin rate-limiting has no limit: want second, minute, hour, day, month or year in config")
	}
	return nil
}

func (f *kongFile) readAdvanced(p *kongPlugin, config node) *Error {
	limits, windows := config.field("limit").items(), config.field("window_size").items()
	if len(limits) == 0 || len(limits) != len(windows) {
		return p.node.fail("the plugin rate-limiting-advanced has %d in limit and %d in window_size: want as many", len(limits), len(windows))
	}
	algorithm := "sliding_window"
	if config.field("window_type").text() == "fixed" {
		algorithm = "fixed_window"
	} else if !config.field("disable_penalty").isTrue() {
		f.Differ(config.position(), "Sliding windows count denied requests, too, unless disable_penalty is true.", "mete charges allowed requests only, so a client that does not slow down is admitted earlier.", "")
	}
	for i := range limits {
		tokens, err := limits[i].number()
		if err != nil {
			return err
		}
		seconds, err := windows[i].number()
		if err != nil {
			return err
		}
		if tokens == 0 || seconds == 0 || seconds > int64(10*365*24*time.Hour/time.Second) {
			return limits[i].fail("limit and window_size: want numbers above 0 and windows of at most 10 years (got %d per %d seconds)", tokens, seconds)
		}
		window := formatSpan(time.Duration(seconds) * time.Second)
		p.limits = append(p.limits, map[string]any{"name": window, "algorithm": algorithm, "tokens": tokens, "window": window})
	}
	return nil
}

// setScope sets the name and the match of a plugin's rule. It returns false if the policy language cannot express
// the scope.
func (f *kongFile) setScope(p *kongPlugin) bool {
	plugin := p.node.field("name").text()
	name, match, reason := "all", map[string]any{}, ""
	switch {
	case p.route.exists:
		name = p.route.name("route")
		match, reason = kongMatch(p.route)
	case p.service.exists:
		name = p.service.name("service")
		match, reason = f.serviceMatch(p.service)
	}
	if p.consumer != "" {
		name = strings.TrimSuffix(p.consumer+"/"+name, "/all")
	}
	if reason != "" {
		f.Differ(p.node.position(), fmt.Sprintf("The plugin %s applies to %s, which %s", plugin, name, reason), "mete has no rule for it.", "Write a rule with a match that takes its requests.")
		return false
	}
	p.rule = Rule{at: p.node.position(), Name: plugin + "/" + name, Group: plugin, Match: maps.Clone(match)}
	if p.consumer != "" {
		p.rule.Match[kongConsumer] = p.consumer
	}
	p.rule.setLimits(p.limits)
	if enabled := p.node.field("enabled"); enabled.text() == "false" {
		p.rule.Mode = "off"
	}
	return true
}

func (f *kongFile) serviceMatch(service node) (map[string]any, string) {
	var matches []map[string]any
	for _, route := range f.routesOf[service.path] {
		match, reason := kongMatch(route)
		if reason != "" {
			return nil, fmt.Sprintf("has a route that %s", reason)
		}
		matches = append(matches, match)
	}
	if len(matches) == 0 {
		return nil, "has no route."
	}
	merged, ok := mergeMatches(matches)
	if !ok {
		return nil, "has routes that differ in more than one condition."
	}
	return merged, ""
}

func kongMatch(route node) (match map[string]any, reason string) {
	match = map[string]any{}
	for _, name := range []string{"expression", "snis", "sources", "destinations"} {
		if route.field(name).exists {
			return nil, fmt.Sprintf("has %s.", name)
		}
	}
	var paths []string
	for _, path := range route.field("paths").texts() {
		switch {
		case strings.HasPrefix(path, "~"):
			return nil, "has a regular expression as its path."
		case path == "/":
			paths = append(paths, "*")
		default:
			paths = append(paths, pathValue(path)+"*")
		}
	}
	if len(paths) > 0 && !slices.Contains(paths, "*") {
		match["path"] = oneOrMore(paths)
	}
	if hosts := route.field("hosts").texts(); len(hosts) > 0 {
		for i, host := range hosts {
			if !isHostPattern(host) {
				return nil, "has a wildcard within its host."
			}
			hosts[i] = strings.ToLower(host)
		}
		match["host"] = oneOrMore(hosts)
	}
	if methods := route.field("methods").texts(); len(methods) > 0 {
		match["method"] = oneOrMore(methods)
	}
	for _, header := range route.field("headers").fields() {
		values := header.texts()
		if slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, "*") }) {
			return nil, "has a regular expression for a header."
		}
		match["header:"+strings.ToLower(header.key)] = oneOrMore(values)
	}
	return match, ""
}
