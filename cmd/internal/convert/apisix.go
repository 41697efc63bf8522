// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/policyyaml"
)

var apisixReader = reader{"apisix", "apisix.yaml of Apache APISIX, or one route as JSON", detectAPISIX, readAPISIX}

var apisixShape = regexp.MustCompile(`["']?\blimit-(count|req|conn)["']?\s*:`)

func detectAPISIX(data []byte) bool { return apisixShape.Match(data) }

var apisixLists = []string{"routes", "services", "consumers", "consumer_groups", "plugin_configs", "global_rules"}

type apisixFile struct {
	Result
	services, configs, groups map[string]node // by ID
	seen                      map[string]bool // paths of converted plugins
}

// An apisixScope selects the requests that a plugin applies to.
type apisixScope struct {
	name   string
	group  string // prefix of the rules' group
	match  map[string]any
	reason string // why the policy language cannot express it; "" if it can
}

func readAPISIX(file string, data []byte) (Result, error) {
	data = bytes.ReplaceAll(data, []byte("\n#END"), []byte("\n"))
	d, err := parseDocument(file, data)
	if err != nil {
		return Result{}, err
	}
	f := apisixFile{services: map[string]node{}, configs: map[string]node{}, groups: map[string]node{}, seen: map[string]bool{}}
	top := d.top()
	if top.field("plugins").exists { // one resource of the admin API
		name := "routes"
		if top.field("username").exists {
			name = "consumers"
		}
		top.value = map[string]any{name: top.value}
		top.doc = &document{file: file, root: top.value, places: map[string]policyyaml.Place{}}
		for path, at := range d.places {
			top.doc.places["/"+name+path] = at
		}
	}
	known := false
	for _, list := range apisixLists {
		n := top.field(list)
		known = known || n.exists
		f.Recognize(len(n.items()), strings.ReplaceAll(strings.TrimSuffix(list, "s"), "_", " "))
	}
	if !known {
		return Result{}, &Error{File: file, Reason: "no routes, services or plugins of APISIX found"}
	}
	for name, index := range map[string]map[string]node{"services": f.services, "plugin_configs": f.configs, "consumer_groups": f.groups} {
		for _, n := range top.field(name).items() {
			index[n.field("id").text()] = n
		}
	}
	if failed := f.convert(top); failed != nil {
		failed.Recognized = f.Recognized
		return Result{}, failed
	}
	if err := f.dropUnreachable(); err != nil {
		return Result{}, err
	}
	if len(f.Rules) > 1 {
		f.Differ(file, "APISIX sends a request to one route, and merges the plugins of its consumer, route, plugin config and service.",
			"In mete, plugins of one name are tiers: consumers first, then routes with longer paths. Global rules also apply.", "")
	}
	return f.Result, nil
}

// convert adds the rules of all resources. Consumers come before routes, because plugins of consumers
// replace plugins of routes.
func (f *apisixFile) convert(top node) *Error {
	for _, n := range top.field("consumers").items() {
		name := n.name("consumer")
		scope := apisixScope{name: name, match: map[string]any{kongConsumer: name}}
		f.consumersDiffer(n)
		if err := f.plugins(scope, n, f.groups[n.field("group_id").text()]); err != nil {
			return err
		}
	}
	type route struct {
		node  node
		scope apisixScope
	}
	var routes []route
	for _, n := range top.field("routes").items() {
		if n.field("status").text() == "0" {
			continue // disabled
		}
		match, reason := apisixMatch(n)
		routes = append(routes, route{n, apisixScope{name: n.name("route"), match: match, reason: reason}})
	}
	slices.SortStableFunc(routes, func(a, b route) int { return longestPath(b.scope.match) - longestPath(a.scope.match) })
	for _, r := range routes {
		if err := f.plugins(r.scope, r.node, f.configs[r.node.field("plugin_config_id").text()], f.services[r.node.field("service_id").text()]); err != nil {
			return err
		}
	}
	for _, n := range top.field("global_rules").items() {
		if err := f.plugins(apisixScope{name: "global", group: "global/", match: map[string]any{}}, n); err != nil {
			return err
		}
	}
	for _, list := range []string{"services", "plugin_configs", "consumer_groups"} {
		for _, n := range top.field(list).items() {
			for _, plugin := range n.field("plugins").fields() {
				if strings.HasPrefix(plugin.key, "limit-") && !f.seen[plugin.path] {
					f.Differ(plugin.position(), fmt.Sprintf("No route in this file uses the plugin %s of %s.", plugin.key, n.name(list)), "mete has no rule for it.", "Convert the routes with it.")
				}
			}
		}
	}
	return nil
}

func longestPath(match map[string]any) int {
	longest := 0
	for _, path := range valuesOf(match["path"]) {
		longest = max(longest, len(path))
	}
	return longest
}

// plugins adds the rules of a resource. A plugin of an earlier source replaces a plugin with the same name of a
// later source.
func (f *apisixFile) plugins(scope apisixScope, sources ...node) *Error {
	done := map[string]bool{}
	for _, source := range sources {
		for _, plugin := range source.field("plugins").fields() {
			f.seen[plugin.path] = true
			if done[plugin.key] || !strings.HasPrefix(plugin.key, "limit-") && plugin.key != "ai-rate-limiting" && plugin.key != "graphql-limit-count" {
				continue
			}
			done[plugin.key] = true
			if plugin.field("_meta", "disable").isTrue() {
				f.Differ(plugin.position(), fmt.Sprintf("The plugin %s of %s is disabled.", plugin.key, scope.name), "mete has no rule for it.", "")
				continue
			}
			if err := f.plugin(scope, plugin); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *apisixFile) plugin(scope apisixScope, n node) *Error {
	if scope.reason != "" {
		f.Differ(n.position(), fmt.Sprintf("The plugin %s applies to %s, which %s", n.key, scope.name, scope.reason), "mete has no rule for it.", "Write a rule with a match that takes its requests.")
		return nil
	}
	rule := Rule{at: n.position(), Name: n.key + "/" + scope.name, Group: scope.group + n.key, Match: maps.Clone(scope.match)}
	var err *Error
	switch n.key {
	case "limit-count":
		err = f.count(n, &rule)
	case "limit-req":
		err = f.requests(n, &rule)
	case "limit-conn":
		f.Differ(n.position(), fmt.Sprintf("limit-conn of %s bounds how many requests are served at once.", scope.name), "mete has no rule for it.", "max_in_flight in mete.yaml bounds all requests of a server.")
		return nil
	default:
		f.Differ(n.position(), fmt.Sprintf("The plugin %s limits requests.", n.key), "mete has no rule for it.", "")
		return nil
	}
	if err != nil || rule.Algorithm == "" {
		return err
	}
	if !f.addWithKey(n, &rule) {
		return nil
	}
	if n.field("allow_degradation").text() != "true" && n.field("policy").text() != "" && n.field("policy").text() != "local" {
		rule.OnStoreError = "closed"
	}
	f.Differ(n.doc.file, "APISIX answers denied requests with rejected_code, which is 503 if it is absent.", "mete answers 429.", "")
	return nil
}

// count converts limit-count. Its windows begin with the first request of a key.
func (f *apisixFile) count(n node, rule *Rule) *Error {
	if n.field("rules").exists {
		f.Differ(n.field("rules").position(), "limit-count has a list of rules.", "mete has no rule for them.", "")
		return nil
	}
	number, window := n.field("count"), n.field("time_window")
	if strings.Contains(number.text()+window.text(), "$") {
		f.Differ(n.position(), "limit-count takes its numbers from variables of the request.", "mete has no rule for it.", "")
		return nil
	}
	tokens, err := number.number()
	if err != nil {
		return err
	}
	seconds, err := window.number()
	if err != nil {
		return err
	}
	if tokens == 0 || seconds == 0 || seconds > int64(10*365*24*time.Hour/time.Second) {
		return n.fail("limit-count: want a count above 0 and a time_window from 1 second to 10 years (got %d per %d seconds)", tokens, seconds)
	}
	rule.Algorithm = "fixed_window"
	rule.Config = map[string]any{"tokens": tokens, "window": formatSpan(time.Duration(seconds) * time.Second), "anchor": "first"}
	if group := n.field("group"); group.exists {
		f.Differ(group.position(), fmt.Sprintf("group: %s shares the counters of routes.", group.text()), "mete counts each rule by itself.", "Merge the rules into one.")
	}
	if policy := n.field("policy").text(); policy == "" || policy == "local" {
		f.Differ(n.doc.file, "policy: local counts in each node of APISIX.", "Servers of mete with the same store share buckets.", "")
	} else {
		f.Differ(n.position(), fmt.Sprintf("policy: %s keeps the counters in Redis.", policy), "mete keeps buckets in its own store.", "Set store in mete.yaml.")
	}
	return nil
}

// requests converts limit-req, a leaky bucket. With nodelay, requests above the rate pass without delay until the
// burst is used up.
func (f *apisixFile) requests(n node, rule *Rule) *Error {
	perSecond, failed := strconv.ParseFloat(n.field("rate").text(), 64)
	burst, failedBurst := strconv.ParseFloat(n.field("burst").text(), 64)
	if !n.field("burst").exists {
		burst, failedBurst = 0, nil
	}
	const least, most = 0.001, 1e9 // the precision of policies
	if failed != nil || failedBurst != nil || perSecond < least || perSecond > most || burst < 0 || burst > most {
		return n.fail("limit-req: want a rate from 0.001 to %.0f and a burst from 0 (got rate %q, burst %q)", most, n.field("rate").text(), n.field("burst").text())
	}
	thousandths := func(v float64) float64 { return float64(int64(v*1000+0.5)) / 1000 }
	if n.field("nodelay").isTrue() {
		rule.Algorithm = "token_bucket"
		rule.Config = map[string]any{"rps": thousandths(perSecond), "burst": thousandths(burst) + 1}
	} else {
		rule.Algorithm = "leaky_bucket"
		rule.Config = map[string]any{"rps": thousandths(perSecond), "queue": thousandths(burst)}
	}
	return nil
}

func (f *apisixFile) consumersDiffer(n node) {
	f.Differ(n.doc.file, "APISIX knows consumers by its authentication plugins.", "The rules read them from "+kongConsumer+", which APISIX sets for upstreams.",
		"Run mete behind APISIX, or replace the attribute with a verified one, such as jwt:sub. Do not accept the header field from clients.")
}
