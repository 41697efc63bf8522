// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
)

// caddyReader converts the handler rate_limit of github.com/mholt/caddy-ratelimit from a Caddyfile or from JSON.
var caddyReader = reader{
	name:   "caddy",
	about:  "Caddyfile or Caddy's JSON: rate_limit of caddy-ratelimit",
	detect: regexp.MustCompile(`(?m)^\s*(rate_limit\s+(\S+\s+)?\{|(reverse_proxy|file_server|handle|route|php_fastcgi|encode)(\s|$))|"handler"\s*:\s*"(rate_limit|reverse_proxy|subroute)"`).Match,
	read:   readCaddy,
}

type caddyZone struct {
	name, key    string
	events       int64
	window       time.Duration
	bits4, bits6 int
	jitter       float64
	sets         [][]condition // alternatives; empty for all requests
	problem      error         // error in its matchers
	where        string
}

// A caddyScope selects the requests that reach a handler.
type caddyScope struct {
	conds  []condition
	prefix string                  // removed by an enclosing handle_path
	named  map[string][]*caddyLine // named matchers of the site

	problem error // set if an enclosing matcher cannot be expressed
}

// with returns the scope with additional clauses.
func (s caddyScope) with(conds []condition) caddyScope {
	s.conds = slices.Concat(s.conds, conds)
	return s
}

type caddyConfig struct {
	Result
	file     string
	zones    []caddyZone
	handlers int
}

func readCaddy(file string, data []byte) (Result, error) {
	c := &caddyConfig{file: file}
	read := c.readCaddyfile
	if strings.HasPrefix(strings.TrimSpace(string(data)), "{") && strings.Contains(string(data), `"apps"`) {
		read = c.json
	}
	if err := read(data); err != nil {
		return Result{}, err
	}
	c.recognize()
	return c.Result, nil
}

// recognize counts the parsed elements.
func (c *caddyConfig) recognize() {
	c.Recognized = nil
	c.Recognize(c.handlers, "rate_limit handler")
	c.Recognize(len(c.zones), "zone")
}

func (c *caddyConfig) fail(l *caddyLine, format string, args ...any) error {
	c.recognize()
	return &Error{File: l.file, Line: l.line, Reason: fmt.Sprintf(format, args...), Recognized: c.Recognized}
}

// readCaddyfile reads the sites of a Caddyfile.
func (c *caddyConfig) readCaddyfile(data []byte) error {
	lines, shared, err := parseCaddyfile(c.file, data)
	if err != nil {
		return err
	}
	c.Differences = shared.unread
	if len(lines) > 0 && lines[0].open && len(lines[0].words) == 0 { // global options
		lines = lines[1:]
	}
	if len(lines) > 0 && !lines[0].open { // one site without braces
		lines = []*caddyLine{{words: lines[0].words, block: lines[1:], open: true, file: c.file, line: lines[0].line}}
	}
	var all []string
	hosts := make([][]string, len(lines))
	for i, l := range lines {
		hosts[i] = c.siteHosts(l)
		all = append(all, hosts[i]...)
	}
	for i, l := range lines {
		s := caddyScope{named: map[string][]*caddyLine{}}
		switch {
		case len(hosts[i]) > 0 && len(lines) > 1:
			s.conds = []condition{{"host", hosts[i], false}}
		case len(hosts[i]) == 0 && len(all) > 0:
			s.conds = []condition{{"host", all, true}}
		}
		if err := c.readHandlers(l.block, s); err != nil {
			return err
		}
	}
	return nil
}

// siteHosts returns the hosts of a site, or none if the site serves all other hosts.
func (c *caddyConfig) siteHosts(site *caddyLine) (hosts []string) {
	for _, word := range site.words {
		for address := range strings.SplitSeq(word, ",") {
			host := address
			if _, rest, ok := strings.Cut(host, "://"); ok {
				host = rest
			}
			host, _, _ = strings.Cut(host, "/")
			if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
				host = host[:i]
			}
			switch {
			case host == "":
			case strings.ContainsAny(host, "*{"):
				c.Differ(site.where(), fmt.Sprintf("The address %s is a pattern.", address), "The policy matches hosts by name and leaves the pattern out.", "List the hosts in the clause host of the rules.")
			default:
				hosts = append(hosts, strings.ToLower(host))
			}
		}
	}
	return hosts
}

// readHandlers reads the directives of a site or of a block in it.
func (c *caddyConfig) readHandlers(block []*caddyLine, s caddyScope) error {
	for _, l := range block {
		if len(l.words) > 0 && strings.HasPrefix(l.words[0], "@") {
			set := l.block
			if !l.open {
				set = []*caddyLine{{words: l.words[1:], file: l.file, line: l.line}}
			}
			s.named[l.words[0]] = set
		}
	}
	var handles []*caddyLine
	for _, l := range block {
		if len(l.words) == 0 {
			continue
		}
		switch l.words[0] {
		case "rate_limit":
			inner, err := c.applyMatcher(l, s)
			if err == nil {
				err = c.rateLimit(l, inner)
			}
			if err != nil {
				return err
			}
		case "route":
			inner, err := c.applyMatcher(l, s)
			if err == nil {
				err = c.readHandlers(l.block, inner)
			}
			if err != nil {
				return err
			}
		case "handle", "handle_path":
			handles = append(handles, l)
		default:
			if line := findLine(l.block, "rate_limit"); line != nil {
				c.Differ(line.where(), fmt.Sprintf("The rate_limit within %s does not limit incoming requests.", l.words[0]), "The policy has no rule for it.", "")
			}
		}
	}
	return c.readExclusive(handles, s)
}

// findLine returns the first line with a directive in a block or its nested blocks.
func findLine(block []*caddyLine, name string) *caddyLine {
	for _, l := range block {
		if len(l.words) > 0 && l.words[0] == name {
			return l
		}
		if found := findLine(l.block, name); found != nil {
			return found
		}
	}
	return nil
}

// readExclusive reads handle and handle_path blocks. A request reaches only the first block that matches. Caddy
// sorts the blocks: long paths first, blocks without a matcher last.
func (c *caddyConfig) readExclusive(handles []*caddyLine, s caddyScope) error {
	slices.SortStableFunc(handles, func(a, b *caddyLine) int { return caddySpecificity(b) - caddySpecificity(a) })
	taken := s
	for _, l := range handles {
		inner, err := c.applyMatcher(l, taken)
		if err != nil {
			return err
		}
		if l.words[0] == "handle_path" && len(l.words) > 1 {
			inner.prefix += strings.TrimRight(strings.TrimSuffix(l.words[1], "*"), "/")
		}
		if err := c.readHandlers(l.block, inner); err != nil {
			return err
		}
		own := inner.conds[len(taken.conds):]
		if len(own) == 0 && inner.problem == nil {
			return nil // it takes all other requests
		}
		rest, err := negateAll(own)
		if err != nil {
			c.Differ(l.where(), fmt.Sprintf("Later handle blocks do not get the requests of %s.", strings.Join(l.words, " ")),
				"The rules of these blocks apply to them, too.", "Add a match to the rules.")
			continue
		}
		taken = taken.with(rest)
	}
	return nil
}

// caddySpecificity returns the sort key of a handle block: the length of its path, then named matchers.
func caddySpecificity(l *caddyLine) int {
	switch {
	case len(l.words) < 2 || l.words[1] == "*":
		return 0
	case strings.HasPrefix(l.words[1], "/"):
		return 1 + len(l.words[1])
	}
	return 1
}

// applyMatcher returns the scope of a directive. Its first argument may be a matcher.
func (c *caddyConfig) applyMatcher(l *caddyLine, s caddyScope) (caddyScope, error) {
	if len(l.words) < 2 || l.words[1] == "*" {
		return s, nil
	}
	var conds []condition
	var err error
	switch word := l.words[1]; {
	case strings.HasPrefix(word, "/"):
		conds, err = caddyMatcher("path", s.prefix, []string{word})
	case s.named[word] != nil:
		conds, err = caddySet(s.prefix, s.named[word])
	default:
		return s, c.fail(l, "%s with an unknown matcher %q", l.words[0], word)
	}
	if s.problem == nil {
		s.problem = err
	}
	return s.with(conds), nil
}

func (c *caddyConfig) rateLimit(l *caddyLine, s caddyScope) error {
	c.handlers++
	var zones []caddyZone
	jitter := 0.0
	for _, line := range l.block {
		switch name := line.words[0]; name {
		case "zone":
			z, err := c.zone(line, s)
			if err != nil {
				return err
			}
			zones = append(zones, z)
		case "jitter":
			if len(line.words) == 2 {
				jitter, _ = strconv.ParseFloat(line.words[1], 64)
			}
		case "distributed":
			c.noteDistributed(line.where())
		case "log_key", "disable_metrics", "storage", "sweep_interval":
		default:
			return c.fail(line, "rate_limit with an unknown subdirective %q", name)
		}
	}
	return c.add(l.where(), zones, jitter, s)
}

// noteDistributed reports that mete shares buckets through its store.
func (c *caddyConfig) noteDistributed(where string) {
	c.Differ(where, "Caddy shares counts through its storage, every few seconds.", "mete shares buckets through its store, exactly.",
		"Start mete with --store redis://… or postgres://… to share buckets.")
}

func (c *caddyConfig) zone(l *caddyLine, s caddyScope) (z caddyZone, err error) {
	if len(l.words) != 2 {
		return z, c.fail(l, "zone without a name")
	}
	z = caddyZone{name: l.words[1], where: l.where()}
	for _, line := range l.block {
		value := ""
		if len(line.words) == 2 {
			value = line.words[1]
		}
		switch name := line.words[0]; name {
		case "key":
			z.key = value
		case "window":
			z.window, err = caddyDuration(value)
		case "events":
			z.events, err = strconv.ParseInt(value, 10, 32)
		case "ipv4_prefix":
			z.bits4, err = strconv.Atoi(value)
		case "ipv6_prefix":
			z.bits6, err = strconv.Atoi(value)
		case "match":
			set, problem := caddySet(s.prefix, line.block)
			z.sets, z.problem = append(z.sets, set), cmp.Or(z.problem, problem)
		default:
			return z, c.fail(line, "zone %s with an unknown subdirective %q", z.name, name)
		}
		if err != nil {
			return z, c.fail(line, "zone %s with the %s %q", z.name, line.words[0], value)
		}
	}
	if z.window <= 0 || z.events <= 0 {
		return z, c.fail(l, "zone %s without window or events", z.name)
	}
	return z, nil
}

// caddyDuration parses a duration of Go, which may also have days.
func caddyDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}

// add adds the rules of a handler's zones.
func (c *caddyConfig) add(where string, zones []caddyZone, jitter float64, s caddyScope) error {
	if len(zones) > 1 {
		c.Differ(where, "Caddy charges the zones of a request one by one until one denies, and keeps what it charged.",
			"mete charges all of them or none, so denied requests cost nothing in any zone.", "")
	}
	for _, z := range zones {
		z.jitter = jitter
		if slices.ContainsFunc(c.zones, func(other caddyZone) bool { return other.name == z.name }) {
			c.Differ(z.where, fmt.Sprintf("Zone %s occurs several times, and Caddy counts all of them together.", z.name), "mete has a rule and a bucket for each.", "")
		}
		c.zones = append(c.zones, z)
		c.rules(z, s)
	}
	return nil
}

// rules adds the rules of a zone, one per matcher set.
func (c *caddyConfig) rules(z caddyZone, s caddyScope) {
	keys, onMissing, differences, err := caddyKey(z.key, z.bits4, z.bits6)
	if err != nil {
		c.Differ(z.where, fmt.Sprintf("The key %s cannot be expressed: %v.", z.key, err), "The policy has no rule for zone "+z.name+".",
			"Set a request header in front of mete and use it in limit_keys.")
		return
	}
	if problem := cmp.Or(s.problem, z.problem); problem != nil {
		c.reportUnmatched(z, problem.Error())
		return
	}
	sets := z.sets
	if len(sets) == 0 {
		sets = [][]condition{nil}
	}
	if len(sets) > 1 {
		c.Differ(z.where, fmt.Sprintf("Zone %s has several matcher sets, which Caddy counts together.", z.name), fmt.Sprintf("mete has %d rules with a bucket each.", len(sets)), "")
	}
	for _, set := range sets {
		r := Rule{
			Name: ruleName(c.Rules, z.name), LimitKeys: keys, OnMissing: onMissing, Algorithm: "sliding_log",
			Description: fmt.Sprintf("rate_limit zone %s, key %s, %d events in %s, at %s", z.name, z.key, z.events, formatSpan(z.window), z.where),
			Config:      map[string]any{"tokens": z.events, "window": formatSpan(z.window)},
		}
		if z.jitter > 0 {
			r.Jitter = strconv.FormatFloat(min(z.jitter, 1)*100, 'f', -1, 64) + "%"
		}
		reachable, err := r.apply(slices.Concat(s.conds, set))
		if err != nil || !reachable {
			reason := "no request satisfies them"
			if err != nil {
				reason = err.Error()
			}
			c.reportUnmatched(z, reason)
			continue
		}
		if z.events > bucket.MaxLogEntries {
			r.Algorithm = "sliding_window"
			c.Differ(z.where, fmt.Sprintf("Caddy remembers the time of each of %d events.", z.events),
				fmt.Sprintf("The log of mete has at most %d, so the rule is a sliding window of two counters.", bucket.MaxLogEntries), "")
		}
		if r.Match["path"] != nil || r.Within != nil {
			c.Differ(c.file, "Caddy compares paths in any case.", "mete compares them exactly.", "List the spellings that your service takes.")
		}
		c.Rules = append(c.Rules, r)
		for _, d := range differences {
			c.Differ(z.where, d.What, d.Effect, d.Remedy)
		}
	}
}

// reportUnmatched reports a zone with matchers that the policy language cannot express.
func (c *caddyConfig) reportUnmatched(z caddyZone, reason string) {
	c.Differ(z.where, fmt.Sprintf("The matchers of zone %s cannot be expressed: %s.", z.name, reason), "The policy has no rule for it.",
		"Write a rule with a match that includes these requests.")
}
