// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var traefikReader = reader{"traefik", "a dynamic configuration of Traefik in YAML or TOML", detectTraefik, readTraefik}

var (
	traefikYAML = regexp.MustCompile(`(?m)^http\s*:|"http"\s*:`)
	traefikTOML = regexp.MustCompile(`(?m)^\s*\[+\s*http\.(middlewares|routers)\.`)
)

func detectTraefik(data []byte) bool {
	return traefikTOML.Match(data) || traefikYAML.Match(data) && (bytes.Contains(data, []byte("middlewares")) || bytes.Contains(data, []byte("routers")))
}

type traefikFile struct {
	Result
	middlewares node
	used        map[string]bool // names of middlewares that a router uses
}

type traefikRouter struct {
	node     node
	priority int64
	limits   []node // rateLimit middlewares in the order of the router
}

func readTraefik(file string, data []byte) (Result, error) {
	parse := parseDocument
	if traefikTOML.Match(data) {
		parse = parseTOML
	}
	d, err := parse(file, data)
	if err != nil {
		return Result{}, err
	}
	f := traefikFile{middlewares: d.top().field("http", "middlewares"), used: map[string]bool{}}
	limits := 0
	for _, m := range f.middlewares.fields() {
		if m.field("rateLimit").exists {
			limits++
		}
	}
	f.Recognize(limits, "rateLimit middleware")
	f.Recognize(len(d.top().field("http", "routers").fields()), "router")
	routers, failed := f.routers(d.top().field("http", "routers"))
	if failed != nil {
		failed.Recognized = f.Recognized
		return Result{}, failed
	}
	for _, router := range routers {
		for i, limit := range router.limits {
			if err := f.addRouter(router, limit, i); err != nil {
				err.Recognized = f.Recognized
				return Result{}, err
			}
		}
	}
	for _, m := range f.middlewares.fields() {
		if err := f.addUnused(m); err != nil {
			err.Recognized = f.Recognized
			return Result{}, err
		}
	}
	if err := f.dropUnreachable(); err != nil {
		return Result{}, err
	}
	if len(routers) > 1 {
		f.Differ(file, "Traefik sends a request to one router, by priority.",
			"In mete, rules of routers are tiers in the same order. A router without rateLimit takes no requests from them.", "")
	}
	return f.Result, nil
}

// routers returns the routers with rate limits in the order of Traefik, by priority. The default priority is the
// length of the rule.
func (f *traefikFile) routers(list node) ([]traefikRouter, *Error) {
	var routers []traefikRouter
	for _, n := range list.fields() {
		router := traefikRouter{node: n}
		var err *Error
		if router.priority, err = n.field("priority").number(); err != nil {
			return nil, err
		}
		if router.priority == 0 {
			router.priority = int64(len(n.field("rule").text()))
		}
		for _, name := range n.field("middlewares").texts() {
			if err := f.collect(n, name, &router.limits, nil); err != nil {
				return nil, err
			}
		}
		if len(router.limits) > 0 {
			routers = append(routers, router)
		}
	}
	slices.SortStableFunc(routers, func(a, b traefikRouter) int { return int(b.priority - a.priority) })
	return routers, nil
}

// collect appends the rate limits of a middleware, including chains.
func (f *traefikFile) collect(router node, name string, limits *[]node, within []string) *Error {
	name, provider, foreign := strings.Cut(name, "@")
	m := f.middlewares.field(name)
	switch {
	case foreign && provider != "file" || !m.exists:
		f.Differ(router.at(), fmt.Sprintf("Router %s uses the middleware %s, which is not in this file.", router.key, name),
			"If it is a rate limit, mete does not have it.", "Convert the file with the middleware, too.")
		return nil
	case slices.Contains(within, name):
		return m.fail("the chain %s contains itself", name)
	}
	f.used[name] = true
	if m.field("rateLimit").exists {
		*limits = append(*limits, m)
	}
	f.reportOther(m)
	for _, next := range m.field("chain", "middlewares").texts() {
		if err := f.collect(router, next, limits, append(within, name)); err != nil {
			return err
		}
	}
	return nil
}

// reportOther reports a middleware that limits something else.
func (f *traefikFile) reportOther(m node) {
	if n := m.field("inFlightReq"); n.exists {
		f.Differ(n.at(), fmt.Sprintf("The middleware %s (inFlightReq) bounds how many requests are served at once.", m.key),
			"mete has no rule for it.", "max_in_flight in mete.yaml bounds all requests of a server.")
	}
}

// addUnused converts a rate limit that no router uses. Its rule applies to all requests.
func (f *traefikFile) addUnused(m node) *Error {
	if f.used[m.key] {
		return nil
	}
	f.reportOther(m)
	if !m.field("rateLimit").exists {
		return nil
	}
	rule, err := f.rule(m, m.key)
	if err != nil || rule == nil {
		return err
	}
	f.Differ(m.at(), fmt.Sprintf("No router in this file uses the middleware %s.", m.key), "The rule of mete applies to all requests.", "Add a match for the requests of its routers.")
	f.Rules = append(f.Rules, *rule)
	return nil
}

// addRouter converts a rate limit of a router. Routers do not share buckets. All limits of a router apply
// together, and the first limits of all routers are tiers.
func (f *traefikFile) addRouter(router traefikRouter, limit node, index int) *Error {
	match, reason := traefikMatch(router.node.field("rule").text())
	if reason != "" {
		f.Differ(router.node.field("rule").at(), fmt.Sprintf("The rule of router %s %s", router.node.key, reason), "mete has no rule for its limits.", "Write a rule with a match that takes its requests.")
		return nil
	}
	rule, err := f.rule(limit, router.node.key+"/"+limit.key)
	if err != nil || rule == nil {
		return err
	}
	rule.Match = match
	rule.Group = "router"
	if index > 0 {
		rule.Group = fmt.Sprintf("router-%d", index+1)
	}
	f.Rules = append(f.Rules, *rule)
	return nil
}

// rule converts a rate limit for all requests. It returns nil if there is no limit.
func (f *traefikFile) rule(m node, name string) (*Rule, *Error) {
	n := m.field("rateLimit")
	average, err := n.field("average").number()
	if err != nil {
		return nil, err
	}
	if average == 0 {
		f.Differ(n.at(), fmt.Sprintf("The middleware %s has average: 0, which is no limit.", m.key), "mete has no rule for it.", "")
		return nil, nil
	}
	burst := int64(1)
	if b := n.field("burst"); b.exists {
		if burst, err = b.number(); err != nil {
			return nil, err
		}
	}
	if burst == 0 {
		return nil, n.field("burst").fail("burst: want at least 1 (got 0)")
	}
	period := time.Second
	if p := n.field("period"); p.exists {
		if period, err = traefikDuration(p); err != nil {
			return nil, err
		}
	}
	rule := &Rule{at: n.at(), Name: ruleName(f.Rules, name), Algorithm: "token_bucket", Config: map[string]any{"rate": formatRate(average, period), "burst": burst}}
	if !f.setKey(n, rule) {
		return nil, nil
	}
	f.Differ(n.doc.file, "Traefik delays a request by up to 500ms, or half the time of one token if that is less, before it denies the request.",
		"mete denies it at once.", "algorithm: leaky_bucket with a queue delays requests.")
	if n.field("redis").exists {
		f.Differ(n.field("redis").at(), "redis shares the buckets between instances.", "mete shares buckets by its own setting.", "Set store in mete.yaml.")
	} else {
		f.Differ(n.doc.file, "Each instance of Traefik has buckets of its own.", "Servers of mete with the same store share buckets.", "")
	}
	return rule, nil
}

// traefikDuration parses a duration. The default unit is seconds.
func traefikDuration(n node) (time.Duration, *Error) {
	d, err := time.ParseDuration(n.text())
	if seconds, numeric := strconv.ParseInt(n.text(), 10, 64); numeric == nil && seconds < 1<<31 {
		d, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || d <= 0 {
		return 0, n.fail("%s: want a duration such as 10s (got %q)", n.key, n.text())
	}
	return d, nil
}

// setKey sets the key of a rule from sourceCriterion. It returns false if mete cannot express it.
func (f *traefikFile) setKey(limit node, rule *Rule) bool {
	n := limit.field("sourceCriterion")
	header, strategy := n.field("requestHeaderName"), n.field("ipStrategy")
	switch {
	case header.exists:
		rule.LimitKeys, rule.OnMissing = []string{"header:" + strings.ToLower(header.text())}, "empty"
	case n.field("requestHost").isTrue():
		rule.LimitKeys = []string{"host"}
	default:
		rule.LimitKeys = []string{"ip:address"}
		subnet := strategy.field("ipv6Subnet").text()
		if bits, err := strconv.Atoi(subnet); err == nil && bits > 0 && bits <= 128 {
			rule.LimitKeys[0] += "/" + subnet
		} else {
			addressDiffers(&f.Result, limit.at(), "Traefik")
		}
		for _, name := range []string{"depth", "excludedIPs"} {
			if s := strategy.field(name); s.exists {
				f.Differ(s.at(), fmt.Sprintf("ipStrategy.%s takes the address of the client from X-Forwarded-For.", name), "mete uses its own settings.",
					"Set trusted_hops or trusted_proxies in mete.yaml.")
			}
		}
	}
	return true
}
