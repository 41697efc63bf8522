// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/proxy"
)

// maxDelayed bounds the setting: each that waits is a goroutine.
const maxDelayed = 1_000_000

func (d *decoder) checkUpstream(s string) {
	if s == "" {
		return
	}
	const want = "not a URL such as http://127.0.0.1:3000"
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "": // whatever it is, it may hold a password
		d.fail("upstream", "is "+want)
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "h2c":
		d.fail("upstream", "%q is "+want, u.Redacted())
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		d.fail("upstream", "must be a scheme, a host and perhaps a path: no user, query or fragment")
	}
}

// checkUpstreams has package proxy judge upstreams and routes.
func (d *decoder) checkUpstreams(c *Config) {
	d.checkUpstream(c.Upstream)
	if c.Upstream != "" && len(c.Upstreams) > 0 {
		d.fail("upstreams", "excludes upstream, which is its short form: say one of them")
	}
	if len(c.Routes) > 0 && len(c.Upstreams) == 0 {
		d.fail("routes", "needs upstreams: the servers that they lead to")
	}
	sound := true
	for i := range c.Upstreams {
		key := fmt.Sprintf("upstreams[%d]", i)
		before := len(d.errors)
		u, err := c.Upstreams[i].proxyUpstream()
		if err != nil {
			d.fail(key+".urls", "%s", "one "+err.Error())
		} else if err := u.Check(); err != nil {
			d.fail(key, "%s", inOneLine(err))
		}
		timeouts := c.Upstreams[i].Timeouts
		d.checkDuration(key+".timeouts.connect", timeouts.Connect, 0)
		d.checkDuration(key+".timeouts.header", timeouts.Header, 0)
		d.checkDuration(key+".timeouts.body", timeouts.Body, 0)
		if c.Upstreams[i].CA != "" && !slices.ContainsFunc(u.Servers, func(s *url.URL) bool { return s.Scheme == "https" }) {
			d.fail(key+".ca", "is for https, which no URL of it is")
		}
		sound = sound && len(d.errors) == before
	}
	if sound && len(c.Upstreams) > 0 && c.Upstream == "" {
		upstreams, routes, err := c.Routing()
		if err == nil {
			err = proxy.CheckRoutes(upstreams, routes)
		}
		if err != nil {
			d.fail("routes", "%s", inOneLine(err))
		}
	}
	for _, protocol := range c.Upgrades {
		if protocol == "" || strings.ContainsAny(protocol, " \t\"") {
			d.fail("upgrades", "%q is no protocol, such as websocket", protocol)
		}
	}
	d.checkWord("underscores_in_headers", c.UnderscoresInHeaders, "drop", "pass", "refuse")
	if c.MaxDelayed < 1 || c.MaxDelayed > maxDelayed {
		d.fail("max_delayed", "must be between 1 and %d, not %d", maxDelayed, c.MaxDelayed)
	}
	d.checkDuration("timeouts.upstream_body", c.Timeouts.UpstreamBody, 0)
	d.checkDuration("timeouts.client_body", c.Timeouts.ClientBody, 0)
	d.checkDuration("timeouts.upgraded", c.Timeouts.Upgraded, 0)
	d.checkAdaptive(c)
}

func (d *decoder) checkAdaptive(c *Config) {
	a := c.Adaptive
	if a.Law != "" {
		d.checkWord("adaptive.law", a.Law, "aimd", "gradient")
		if !c.InFront() {
			d.fail("adaptive.law", "needs an upstream: it goes by how long that takes to answer")
		}
	}
	if a.Law == "gradient" && a.Target != 0 {
		d.fail("adaptive.target", "is for aimd: gradient goes by tolerance")
	}
	d.checkDuration("adaptive.target", a.Target, 0)
	if !(a.Tolerance >= 1 && a.Tolerance <= 100) { // NaN, too
		d.fail("adaptive.tolerance", "must be between 1 and 100, not %v", a.Tolerance)
	}
	if !(a.Floor >= 0.0001 && a.Floor <= 1) {
		d.fail("adaptive.floor", "must be between 0.0001 and 1, not %v", a.Floor)
	}
	if a.Interval < time.Millisecond || a.Interval > time.Hour {
		d.fail("adaptive.interval", "must be between 1ms and 1h, not %v", a.Interval)
	}
	if a.Target > time.Hour {
		d.fail("adaptive.target", "must be at most 1h, not %v", a.Target)
	}
}

// inOneLine is an error of several lines in one.
func inOneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
