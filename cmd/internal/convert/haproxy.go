// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// haproxyReader converts request rates in stick tables of HAProxy.
//
// In HAProxy, one line tracks requests in a table that counts them, and a later line denies requests above a rate.
// A rule consists of a deny line and its track line.
var haproxyReader = reader{
	name:   "haproxy",
	about:  "haproxy.cfg: stick tables that store http_req_rate",
	detect: regexp.MustCompile(`(?m)^\s*(stick-table\s+type\s|http-request\s+(track-sc|deny|tarpit)|(frontend|backend|listen)\s+\S+\s*(#.*)?$)`).Match,
	read:   readHaproxy,
}

type haproxyLine struct {
	words []string
	line  int
}

func (l haproxyLine) text() string { return strings.Join(l.words, " ") }

// A haproxyTable is a stick table. Its name is the name of its section.
type haproxyTable struct {
	kind   string // type of its keys
	window time.Duration
	line   int
}

type haproxyTrack struct {
	counter string
	source  string // fetch, such as src
	table   string
	conds   []condition
	always  bool // without a condition
	line    haproxyLine
}

// A haproxyProxy is the state of the reader within one section.
type haproxyProxy struct {
	kind, name string
	acls       map[string][]haproxyTerm // alternatives
	tracks     []haproxyTrack
	exempt     []condition // requests that an earlier line allows
	lost       []string    // counters of tracks that cannot be expressed
}

type haproxyConfig struct {
	Result
	file     string
	tables   map[string]*haproxyTable
	sections []haproxySection
	frontend int // sections with request rules
}

type haproxySection struct {
	kind, name string
	lines      []haproxyLine
}

func readHaproxy(file string, data []byte) (Result, error) {
	c := &haproxyConfig{file: file, tables: map[string]*haproxyTable{}}
	if err := c.split(string(data)); err != nil {
		return Result{}, err
	}
	for _, s := range c.sections {
		for _, l := range s.lines {
			if l.words[0] == "stick-table" {
				if err := c.table(s, l); err != nil {
					return Result{}, err
				}
			}
		}
	}
	for _, s := range c.sections {
		if err := c.section(s); err != nil {
			return Result{}, err
		}
	}
	c.recognize()
	return c.Result, nil
}

func (c *haproxyConfig) recognize() {
	c.Recognized = nil
	c.Recognize(len(c.sections), "section")
	c.Recognize(len(c.tables), "stick table")
}

func (c *haproxyConfig) fail(l haproxyLine, format string, args ...any) error {
	c.recognize()
	return &Error{File: c.file, Line: l.line, Reason: fmt.Sprintf(format, args...), Recognized: c.Recognized}
}

func (c *haproxyConfig) differ(l haproxyLine, what, effect, remedy string) {
	c.Differ(place(c.file, l.line), what, effect, remedy)
}

var haproxySections = []string{"global", "defaults", "frontend", "backend", "listen", "peers", "resolvers", "userlist", "mailers", "program", "cache", "ring", "http-errors", "fcgi-app", "crt-store", "log-forward", "traces"}

func (c *haproxyConfig) split(text string) error {
	for i, line := range strings.Split(text, "\n") {
		words, err := haproxyWords(strings.TrimSuffix(line, "\r"))
		l := haproxyLine{words, i + 1}
		switch {
		case err != nil:
			return c.fail(l, "%v", err)
		case len(words) == 0:
		case slices.Contains(haproxySections, words[0]):
			s := haproxySection{kind: words[0]}
			if len(words) > 1 {
				s.name = words[1]
			}
			c.sections = append(c.sections, s)
		case len(c.sections) == 0:
			return c.fail(l, "%q stands before the first section", words[0])
		default:
			s := &c.sections[len(c.sections)-1]
			s.lines = append(s.lines, l)
		}
	}
	return nil
}

// haproxyWords splits a line into words, with quotes and backslashes as in a shell.
func haproxyWords(line string) (words []string, err error) {
	var word strings.Builder
	started, quote := false, byte(0)
	end := func() {
		if started {
			words = append(words, word.String())
		}
		word.Reset()
		started = false
	}
	for i := 0; i < len(line); i++ {
		ch := line[i]
		switch {
		case ch == '\\' && quote != '\'' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
			started = true
		case quote != 0 && ch == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(ch)
		case ch == '"' || ch == '\'':
			quote, started = ch, true
		case ch == '#':
			end()
			return words, nil
		case ch == ' ' || ch == '\t':
			end()
		default:
			word.WriteByte(ch)
			started = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed", quote)
	}
	end()
	return words, nil
}

// table reads stick-table type TYPE size N expire D store http_req_rate(PERIOD),….
func (c *haproxyConfig) table(s haproxySection, l haproxyLine) error {
	t := &haproxyTable{line: l.line}
	for i := 1; i < len(l.words); i++ {
		value := ""
		if i+1 < len(l.words) {
			value = l.words[i+1]
		}
		switch l.words[i] {
		case "type":
			t.kind = value
		case "store":
			for _, item := range strings.Split(value, ",") {
				name, arg, _ := strings.Cut(strings.TrimSuffix(item, ")"), "(")
				if name == "http_req_rate" {
					window, err := haproxyDuration(arg)
					if err != nil {
						return c.fail(l, "stick-table with http_req_rate(%s): %v", arg, err)
					}
					t.window = window
				}
			}
		}
	}
	if t.kind == "" {
		return c.fail(l, "stick-table without type")
	}
	c.tables[s.name] = t
	return nil
}

// haproxyDuration parses a number with a unit. The default unit is milliseconds.
func haproxyDuration(text string) (time.Duration, error) {
	number := strings.TrimRight(text, "usmhd")
	units := map[string]time.Duration{"us": time.Microsecond, "": time.Millisecond, "ms": time.Millisecond,
		"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
	n, err := strconv.ParseInt(number, 10, 32)
	unit, ok := units[text[len(number):]]
	if err != nil || !ok || n <= 0 {
		return 0, fmt.Errorf("%q is not a period such as 10s", text)
	}
	return time.Duration(n) * unit, nil
}

func (c *haproxyConfig) section(s haproxySection) error {
	if s.kind != "frontend" && s.kind != "listen" && s.kind != "backend" {
		return nil
	}
	p := &haproxyProxy{kind: s.kind, name: s.name, acls: map[string][]haproxyTerm{}}
	before := len(c.Rules)
	for _, l := range s.lines {
		var err error
		switch verb := l.words[0]; {
		case verb == "acl" && len(l.words) > 2:
			term := parseHaproxyTerm(l.words[2:])
			p.acls[l.words[1]] = append(p.acls[l.words[1]], term)
		case (verb == "http-request" || verb == "tcp-request") && len(l.words) > 1:
			err = c.request(p, l)
		case slices.ContainsFunc(l.words, isHaproxyRate):
			c.differ(l, fmt.Sprintf("%s depends on a rate.", verb), "The policy has no rule for it.", "")
		}
		if err != nil {
			return err
		}
	}
	if len(c.Rules) == before {
		return nil
	}
	if c.frontend++; c.frontend > 1 || s.kind == "backend" {
		c.Differ(place(c.file, s.lines[0].line), fmt.Sprintf("The limits of %s %s apply to its requests alone.", s.kind, s.name),
			"The rules of the policy apply to all requests that match.", "Add a clause host or path to the rules.")
	}
	return nil
}

func (c *haproxyConfig) request(p *haproxyProxy, l haproxyLine) error {
	words, line := l.words[1:], l
	if l.words[0] == "tcp-request" && len(words) > 1 { // connection, session or content
		words = words[1:]
	}
	action := words[0]
	condition, negated := []string(nil), false
	if i := slices.IndexFunc(words, func(w string) bool { return w == "if" || w == "unless" }); i >= 0 {
		condition, negated = words[i+1:], words[i] == "unless"
		words = words[:i]
	}
	rated := slices.ContainsFunc(slices.Concat(l.words, c.resolve(p, condition)), isHaproxyRate)
	switch {
	case strings.HasPrefix(action, "track-sc"):
		return c.track(p, line, words, condition, negated)
	case action == "allow":
		c.allow(p, line, condition, negated)
	case !rated:
	case l.words[0] == "tcp-request" && l.words[1] != "content":
		c.differ(line, "The line refuses connections.", "mete limits requests, so the policy has no rule for it.", "")
	case slices.Contains([]string{"deny", "tarpit", "reject", "silent-drop", "return"}, action):
		return c.deny(p, line, words, condition, negated)
	default:
		c.differ(line, fmt.Sprintf("%s depends on a rate.", action), "The policy has no rule for it.", "")
	}
	return nil
}

// track reads track-scN SOURCE [table NAME] [if CONDITION].
func (c *haproxyConfig) track(p *haproxyProxy, l haproxyLine, words, condition []string, negated bool) error {
	t := haproxyTrack{counter: strings.TrimPrefix(words[0], "track-sc"), table: p.name, always: condition == nil, line: l}
	if len(words) < 2 {
		return c.fail(l, "%s without a key", words[0])
	}
	t.source = words[1]
	if i := slices.Index(words, "table"); i > 0 && i+1 < len(words) {
		t.table = words[i+1]
	}
	if c.tables[t.table] == nil {
		return c.fail(l, "%s in %s, which has no stick-table", words[0], t.table)
	}
	all, err := c.conditions(p, condition, negated)
	if err == nil && len(all) > 1 {
		err = fmt.Errorf("it has alternatives")
	}
	if err != nil {
		c.differ(l, fmt.Sprintf("The condition of %s cannot be expressed: %v.", words[0], err),
			"The policy has no rule for the lines that depend on it.", "Write a rule for the requests that the line tracks.")
		p.lost = append(p.lost, t.counter)
		return nil
	}
	t.conds = all[0].conds
	p.tracks = append(p.tracks, t)
	return nil
}

// allow reads a line that exempts requests from later lines.
func (c *haproxyConfig) allow(p *haproxyProxy, l haproxyLine, condition []string, negated bool) {
	all, err := c.conditions(p, condition, negated)
	if err == nil {
		for _, a := range all {
			if len(a.conds) != 1 || a.rate != nil {
				err = fmt.Errorf("its opposite has alternatives")
				break
			}
			exempt := a.conds[0]
			exempt.negate = !exempt.negate
			p.exempt = append(p.exempt, exempt)
		}
	}
	if err != nil {
		c.differ(l, fmt.Sprintf("The condition of allow cannot be expressed: %v.", err), "The policy limits these requests, too.",
			"Add a match to the rules.")
	}
}

// deny adds the rules of a line that denies requests above a rate.
func (c *haproxyConfig) deny(p *haproxyProxy, l haproxyLine, words, condition []string, negated bool) error {
	all, err := c.conditions(p, condition, negated)
	if err != nil {
		c.differ(l, fmt.Sprintf("The condition of %s cannot be expressed: %v.", words[0], err), "The policy has no rule for it.", "")
		return nil
	}
	rated := 0
	for _, a := range all {
		if a.rate == nil {
			continue
		}
		rated++
		if err := c.limit(p, l, words, a); err != nil {
			return err
		}
	}
	if rated > 1 {
		c.differ(l, "The line denies in several cases, which HAProxy counts together.", fmt.Sprintf("mete has %d rules with a bucket each.", rated), "")
	}
	return nil
}

// limit adds the rule for one alternative of a deny line.
func (c *haproxyConfig) limit(p *haproxyProxy, l haproxyLine, words []string, a haproxyCase) error {
	track, counted, ok := c.trackOf(p, l, a.rate)
	if !ok {
		return nil
	}
	table := c.tables[track.table]
	switch {
	case table == nil:
		return c.fail(l, "the rate of table %s, which does not exist", track.table)
	case table.window == 0:
		return c.fail(l, "the rate of table %s, which stores no http_req_rate", track.table)
	}
	tokens := a.rate.most
	if !counted {
		tokens++ // HAProxy compares before it counts the request
	}
	if tokens < 1 {
		c.differ(l, "The line denies every request.", "The policy has no rule for it.", "Use an override with the action block.")
		return nil
	}
	key, differences, err := haproxyKey(track.source)
	if err != nil {
		c.differ(track.line, fmt.Sprintf("The key %s cannot be expressed: %v.", track.source, err), "The policy has no rule for it.",
			"Set a request header in front of mete and use it in limit_keys.")
		return nil
	}
	r := Rule{
		Name: ruleName(c.Rules, track.table), LimitKeys: key, Algorithm: "sliding_window",
		Config:      map[string]any{"tokens": tokens, "window": formatSpan(table.window)},
		Description: fmt.Sprintf("%s at %s", l.text(), place(c.file, l.line)),
	}
	reachable, err := r.apply(slices.Concat(p.exempt, track.conds, a.conds))
	if err != nil || !reachable {
		reason := "no request satisfies it"
		if err != nil {
			reason = err.Error()
		}
		c.differ(l, fmt.Sprintf("The condition of %s cannot be expressed: %s.", words[0], reason), "The policy has no rule for it.", "")
		return nil
	}
	c.Rules = append(c.Rules, r)
	for _, d := range differences {
		c.differ(track.line, d.What, d.Effect, d.Remedy)
	}
	for _, d := range a.differences {
		c.differ(l, d.What, d.Effect, d.Remedy)
	}
	c.explain(l, words, track, a, counted, r)
	return nil
}

func (c *haproxyConfig) explain(l haproxyLine, words []string, track haproxyTrack, a haproxyCase, counted bool, r Rule) {
	if counted {
		c.Differ(c.file, "HAProxy counts denied requests, so a client that keeps sending more than its limit stays denied.",
			"mete does not charge denied requests, so such a client gets its limit and no more.", "")
	}
	if rest := slices.DeleteFunc(slices.Clone(a.conds), func(cond condition) bool {
		return slices.ContainsFunc(track.conds, func(other condition) bool { return fmt.Sprint(other) == fmt.Sprint(cond) })
	}); counted && len(rest) > 0 {
		c.differ(l, "HAProxy counts all requests that line "+strconv.Itoa(track.line.line)+" tracks, and denies some of them.",
			"Rule "+r.Name+" counts only the requests that it can deny.", "Give track the condition of "+words[0]+" to compare them.")
	}
	if words[0] != "deny" && words[0] != "return" {
		c.differ(l, fmt.Sprintf("%s does not answer at once, or at all.", words[0]), "mete answers denied requests with 429 and Retry-After.", "")
		return
	}
	status := "403"
	for _, name := range []string{"deny_status", "status"} {
		if i := slices.Index(words, name); i > 0 && i+1 < len(words) {
			status = words[i+1]
		}
	}
	if status != "429" {
		c.differ(l, fmt.Sprintf("HAProxy denies with status %s.", status), "mete denies with 429 and Retry-After.", "")
	}
}

// trackOf returns the track line for a rate, and whether it counts the request before the comparison.
func (c *haproxyConfig) trackOf(p *haproxyProxy, l haproxyLine, rate *haproxyRate) (track haproxyTrack, counted, ok bool) {
	for _, t := range p.tracks {
		if rate.counter != "" && t.counter == rate.counter && (rate.table == "" || rate.table == t.table) {
			return t, true, true
		}
		if source, _, _ := splitFetch(t.source); rate.counter == "" && source == "src" && (rate.table == "" && t.table == p.name || rate.table == t.table) {
			return t, true, true
		}
	}
	if rate.counter != "" && !slices.Contains(p.lost, rate.counter) {
		c.differ(l, "No earlier line of the section tracks requests with counter "+rate.counter+".", "The policy has no rule for it.",
			"Move the line of track-sc before this one.")
	}
	if rate.counter != "" {
		return track, false, false
	}
	name := rate.table
	if name == "" {
		name = p.name
	}
	return haproxyTrack{source: "src", table: name, line: l}, false, true
}
