// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/metehq/mete/proxy"
)

func (d *decoder) checkUpstream(u *url.URL) {
	const want = "not a URL such as http://127.0.0.1:3000"
	switch {
	case u == nil:
	case u.Host == "": // it may contain a password
		d.fail("upstream", "is "+want)
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "h2c":
		d.fail("upstream", "%q is "+want, u.Redacted())
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		d.fail("upstream", "must be a scheme, a host and perhaps a path: no user, query or fragment")
	}
}

// checkUpstreams checks upstreams and routes with package proxy.
func (d *decoder) checkUpstreams(c *Config) {
	d.checkUpstream(c.Upstream)
	if c.Upstream != nil && len(c.Upstreams) > 0 {
		d.fail("upstreams", "excludes upstream, which is its short form: set one of them")
	}
	if len(c.Routes) > 0 && len(c.Upstreams) == 0 {
		d.fail("routes", "needs upstreams: each route leads to one")
	}
	sound := true
	for i := range c.Upstreams {
		u, key := &c.Upstreams[i], fmt.Sprintf("upstreams[%d]", i)
		before := len(d.errors)
		made := u.proxyUpstream()
		if err := made.Check(); err != nil && !d.hasError(key+".url") { // urls, or a misspelled name
			d.fail(key, "%s", joinLines(err))
		}
		checkRange(d, key+".timeouts.connect", u.Timeouts.Connect, 0, maxTimeout)
		checkRange(d, key+".timeouts.header", u.Timeouts.Header, 0, maxTimeout)
		checkRange(d, key+".timeouts.body", u.Timeouts.Body, 0, maxTimeout)
		if u.CA != "" && !slices.ContainsFunc(u.URLs, func(s *url.URL) bool { return s.Scheme == "https" }) {
			d.fail(key+".ca", "requires an https URL")
		}
		sound = sound && len(d.errors) == before && !d.hasError(key)
	}
	if sound && len(c.Upstreams) > 0 && c.Upstream == nil {
		if err := proxy.CheckRoutes(c.UpstreamsAndRoutes()); err != nil {
			d.fail("routes", "%s", joinLines(err))
		}
	}
	for _, protocol := range c.Upgrades {
		if protocol == "" || strings.ContainsAny(protocol, " \t\"") {
			d.fail("upgrades", "%q is not a protocol such as websocket", protocol)
		}
	}
	if c.Adaptive.Law != "" && !c.IsGateway() {
		d.fail("adaptive.law", "needs an upstream, because it measures response times")
	}
	if c.Adaptive.Law == "gradient" && c.Adaptive.Target != 0 {
		d.fail("adaptive.target", "requires aimd: gradient uses tolerance")
	}
}

func (d *decoder) hasError(item string) bool {
	return slices.ContainsFunc(d.errors, func(e Error) bool { return strings.HasPrefix(e.Key, item) })
}
