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

// nginxReader converts limit_req of nginx.
//
// In nginx, a zone and a key identify a bucket, and limit_req sets its burst. A rule is therefore a zone with one
// burst, for all servers and locations that use them.
var nginxReader = reader{
	name:   "nginx",
	about:  "nginx.conf, or a file that it includes: limit_req_zone and limit_req",
	detect: regexp.MustCompile(`(?m)^\s*(limit_req(_zone)?\s[^;{]*;|(http|server|events)\s*\{\s*(#.*)?$|location\s[^{;]*\{)`).Match,
	read:   readNginx,
}

type nginxZone struct {
	name, key string
	count     int64 // requests
	per       time.Duration
	at        *directive
	used      bool
}

// A nginxLimit is a limit_req with its parameters.
type nginxLimit struct {
	zone         string
	burst, delay int64 // delay is the part of burst that passes without delay
	shadow       bool
}

type nginxServer struct {
	names     []string // names that mete can match
	first     string   // $server_name
	fallback  bool     // serves hosts without a server of their own
	locations []location
	at        *directive
}

type nginxConfig struct {
	Result
	file    string
	zones   map[string]*nginxZone
	order   []string // of zones
	vars    map[string]*nginxVar
	servers []*nginxServer
	levels  [][]nginxLimit // limits of each location, by its value
	limits  []nginxLimit   // distinct, in file order
	places  map[nginxLimit]string
	applied int // limit_req directives

	expanded int // expanded key expressions
}

// A nginxLevel holds the settings that a block inherits.
type nginxLevel struct {
	limits []nginxLimit
	shadow bool
	status string
}

func readNginx(file string, data []byte) (Result, error) {
	block, shared, err := parseNginx(file, data)
	if err != nil {
		return Result{}, err
	}
	c := &nginxConfig{file: file, zones: map[string]*nginxZone{}, vars: map[string]*nginxVar{}, places: map[nginxLimit]string{}}
	c.Differences = shared.unread
	if found := find(block, "http"); len(found) > 0 {
		block = nil
		for _, http := range found {
			block = append(block, http.block...)
		}
	}
	if err := c.http(block); err != nil {
		return Result{}, err
	}
	c.recognize(len(shared.files))
	c.rules()
	for _, name := range c.order {
		if z := c.zones[name]; !z.used {
			c.Differ(z.at.where(), fmt.Sprintf("No limit_req uses zone %s.", name), "The policy has no rule for it.", "")
		}
	}
	return c.Result, nil
}

// recognize counts the parsed elements.
func (c *nginxConfig) recognize(files int) {
	c.Recognized = nil
	c.Recognize(files, "included file")
	c.Recognize(len(c.zones), "zone")
	c.Recognize(len(c.servers), "server")
	c.Recognize(c.applied, "limit_req directive")
}

func (c *nginxConfig) fail(d *directive, format string, args ...any) error {
	c.recognize(0)
	return &Error{File: d.file, Line: d.line, Reason: fmt.Sprintf(format, args...), Recognized: c.Recognized}
}

// http reads the http block, or a file that nginx includes in one.
func (c *nginxConfig) http(block []*directive) error {
	for _, d := range block {
		switch d.name {
		case "limit_req_zone":
			if err := c.zone(d); err != nil {
				return err
			}
		case "map", "geo":
			c.variable(d)
		case "limit_conn_zone":
			c.Differ(d.where(), d.text()+" counts connections.", "The policy has no limit on concurrent requests.", "")
		}
	}
	level, err := c.level(block, nginxLevel{})
	if err != nil {
		return err
	}
	servers := find(block, "server")
	if len(servers) == 0 { // a file that a server block includes
		return c.server(&directive{name: "server", block: block, file: c.file}, level)
	}
	for _, d := range servers {
		if err := c.server(d, level); err != nil {
			return err
		}
	}
	c.chooseFallback()
	return nil
}

// zone reads limit_req_zone KEY zone=NAME:SIZE rate=RATE.
func (c *nginxConfig) zone(d *directive) error {
	z := &nginxZone{at: d}
	for i, arg := range d.args {
		name, value, _ := strings.Cut(arg, "=")
		switch {
		case i == 0:
			z.key = arg
		case name == "zone":
			z.name, _, _ = strings.Cut(value, ":")
		case name == "rate":
			number, unit := strings.TrimRight(value, "r/sm"), ""
			if len(number) < len(value) {
				unit = value[len(number):]
			}
			n, err := strconv.ParseInt(number, 10, 32)
			if err != nil || n <= 0 || unit != "r/s" && unit != "r/m" {
				return c.fail(d, "limit_req_zone with the rate %q: it must be like 10r/s or 30r/m", value)
			}
			z.count, z.per = n, time.Second
			if unit == "r/m" {
				z.per = time.Minute
				c.noteTruncated(d, n)
			}
		case arg != "sync":
			return c.fail(d, "limit_req_zone with an unknown parameter %q", arg)
		}
	}
	switch {
	case z.name == "":
		return c.fail(d, "limit_req_zone without zone")
	case z.count == 0:
		return c.fail(d, "limit_req_zone without rate")
	case c.zones[z.name] != nil:
		return c.fail(d, "limit_req_zone %s is defined twice", z.name)
	}
	c.zones[z.name] = z
	c.order = append(c.order, z.name)
	return nil
}

// noteTruncated reports that nginx truncates a rate to thousandths of a request per second.
func (c *nginxConfig) noteTruncated(d *directive, perMinute int64) {
	if perMinute*1000%60 != 0 {
		c.Differ(d.where(), fmt.Sprintf("nginx truncates %dr/m to 0.%03d requests per second.", perMinute, perMinute*1000/60),
			fmt.Sprintf("mete refills exactly %d per minute, so it admits the next request a little earlier.", perMinute), "")
	}
}

// level reads the limits of a block. A block with limits replaces all inherited ones.
func (c *nginxConfig) level(block []*directive, from nginxLevel) (nginxLevel, error) {
	level := from
	for _, d := range block {
		switch {
		case d.name == "limit_req_dry_run" && len(d.args) == 1:
			level.shadow = d.args[0] == "on"
		case d.name == "limit_req_status" && len(d.args) == 1:
			level.status = d.args[0]
		case d.name == "limit_conn" || d.name == "limit_rate":
			c.Differ(d.where(), d.text()+" is not a rate of requests.", "The policy has no rule for it.", "")
		}
	}
	var own []nginxLimit
	for _, d := range find(block, "limit_req") {
		limit, err := c.limit(d)
		if err != nil {
			return level, err
		}
		own = append(own, limit)
		if level.status != "429" {
			status := level.status
			if status == "" {
				status = "503"
			}
			c.Differ(place(c.file, 0), fmt.Sprintf("nginx denies with status %s (limit_req_status).", status),
				"mete denies with 429 and Retry-After.", "")
		}
	}
	if own != nil {
		level.limits = own
	}
	level.limits = slices.Clone(level.limits)
	for i := range level.limits {
		level.limits[i].shadow = level.shadow
	}
	return level, nil
}

// limit reads limit_req zone=NAME [burst=N] [nodelay | delay=N].
func (c *nginxConfig) limit(d *directive) (l nginxLimit, err error) {
	nodelay := false
	for _, arg := range d.args {
		name, value, _ := strings.Cut(arg, "=")
		number, numberErr := strconv.ParseInt(value, 10, 32)
		switch {
		case name == "zone" && value != "":
			l.zone = value
		case name == "burst" && numberErr == nil && number > 0:
			l.burst = number
		case name == "delay" && numberErr == nil && number > 0:
			l.delay = number
		case arg == "nodelay":
			nodelay = true
		default:
			return l, c.fail(d, "limit_req with an invalid parameter %q", arg)
		}
	}
	if nodelay || l.delay > l.burst {
		l.delay = l.burst
	}
	z := c.zones[l.zone]
	if z == nil {
		return l, c.fail(d, "limit_req of the unknown zone %q", l.zone)
	}
	z.used = true
	c.applied++
	for _, shadow := range []bool{false, true} {
		l.shadow = shadow
		if c.places[l] == "" {
			c.places[l] = d.where()
		}
	}
	l.shadow = false
	return l, nil
}

// rules adds a rule for each zone and burst, limited to its hosts and paths.
func (c *nginxConfig) rules() {
	depths := map[string][]nginxLimit{}
	for _, level := range c.levels {
		for _, l := range level {
			if !slices.Contains(c.limits, l) {
				c.limits = append(c.limits, l)
				depths[l.zone] = append(depths[l.zone], l)
			}
		}
	}
	for _, l := range c.limits {
		z := c.zones[l.zone]
		if len(depths[l.zone]) > 1 {
			c.Differ(c.places[l], fmt.Sprintf("Zone %s is used with different bursts, delays or modes, and nginx counts them in one bucket.", z.name),
				"mete has a rule and a bucket for each, so a client can spend each of them.", "Use one burst for the zone, or one zone for each.")
		}
		spreads := c.spreads(l)
		if len(spreads) == 0 {
			reason := fmt.Sprintf("No request reaches this limit_req of zone %s.", z.name)
			if z.key == "$server_name" {
				reason = fmt.Sprintf("The key %s of zone %s is always empty, and nginx does not count such requests.", z.key, z.name)
			}
			c.Differ(c.places[l], reason, "The policy has no rule for it.", "")
			continue
		}
		if len(spreads) > 1 {
			c.Differ(c.places[l], fmt.Sprintf("Zone %s is one bucket for hosts and locations that one rule cannot express.", z.name),
				fmt.Sprintf("mete has %d rules with a bucket each.", len(spreads)), "")
		}
		parts, err := c.keys(c.constantKey(l))
		if err != nil {
			c.Differ(z.at.where(), fmt.Sprintf("The key %q cannot be expressed: %s.", z.key, err), "The policy has no rule for zone "+z.name+".",
				"Set a request header in front of mete and use it in limit_keys.")
			continue
		}
		for _, s := range spreads {
			for _, part := range parts {
				c.rule(l, z, s, part)
			}
		}
	}
}

// maxDelay is the longest wait in a queue of mete serve.
const maxDelay = 30 * time.Second

func (c *nginxConfig) rule(l nginxLimit, z *nginxZone, s nginxSpread, part nginxPart) {
	text := fmt.Sprintf("limit_req zone=%s", z.name)
	r := Rule{
		Name: ruleName(c.Rules, z.name), LimitKeys: part.keys, OnMissing: part.onMissing, Within: s.shape.within,
		Match: map[string]any{}, Config: map[string]any{},
	}
	if z.per == time.Second {
		r.Config["rps"] = z.count
	} else {
		r.Config["rate"] = formatRate(z.count, z.per)
	}
	if l.burst > 0 {
		text += fmt.Sprintf(" burst=%d", l.burst)
	}
	switch {
	case l.delay == l.burst: // one, and the burst, go ahead at once
		r.Algorithm, r.Config["burst"] = "token_bucket", l.burst+1
	default:
		if longest := time.Duration(l.burst-l.delay) * z.per / time.Duration(z.count); longest > maxDelay {
			c.Differ(c.places[l], fmt.Sprintf("nginx delays requests by up to %s.", longest.Round(time.Second)),
				"mete as a gateway denies requests that would wait for more than "+formatSpan(maxDelay)+".", "Use a smaller burst, or nodelay.")
		}
		r.Algorithm, r.Config["queue"] = "leaky_bucket", l.burst-l.delay
		if l.delay > 0 {
			r.Config["capacity"] = l.delay + 1
		}
	}
	switch {
	case l.burst > 0 && l.delay == l.burst:
		text += " nodelay"
	case l.delay > 0:
		text += fmt.Sprintf(" delay=%d", l.delay)
	}
	if l.shadow {
		r.Mode = "shadow"
	}
	r.Description = fmt.Sprintf("%s at %s, %s", text, c.places[l], z.at.text())
	if s.hosts != nil {
		r.Match["host"] = s.hosts
	}
	if s.shape.match != nil {
		r.Match["path"] = s.shape.match
	}
	for _, cond := range part.conds {
		if r.Match[cond.attribute] != nil {
			c.Differ(z.at.where(), fmt.Sprintf("The key %q and the location both depend on %s.", z.key, cond.attribute),
				"The rule "+r.Name+" applies the location and ignores the condition of the key.", "")
			continue
		}
		r.Match[cond.attribute] = cond.value()
	}
	for _, prefix := range s.shape.rough {
		c.Differ(c.places[l], fmt.Sprintf("The location %s takes all paths that begin with %[1]s.", prefix),
			fmt.Sprintf("Rule %s takes %s and the paths below %[2]s/.", r.Name, prefix), "")
	}
	if slices.Contains(part.keys, "ip:address") {
		c.Differ(c.file, "nginx counts each IPv6 address by itself.", "mete counts all addresses of a /64 as one client, because one client has a whole /64.",
			"Use ip:address/128 in limit_keys to count like nginx.")
	}
	for _, d := range part.differences {
		c.Differ(z.at.where(), d.What, d.Effect, d.Remedy)
	}
	c.Rules = append(c.Rules, r)
}
