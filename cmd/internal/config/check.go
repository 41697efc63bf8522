// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/pgstore/violations"
	"github.com/metehq/mete/policy"
)

// maxTimeout bounds every duration: a day is longer than any of them needs.
const maxTimeout = 24 * time.Hour

// check collects what is wrong with values that were read well.
func (d *decoder) check(c *Config) {
	d.checkAddress("listen", c.Listen)
	d.checkAddress("admin_listen", c.AdminListen)
	if c.Listen == c.AdminListen && !anyPort(c.Listen) {
		d.fail("admin_listen", "is the same address as listen: the two must differ")
	}
	d.checkAdmin(c)
	d.checkBounds(c)
	d.checkUpstreams(c)
	if c.DecisionProfile != "" {
		d.checkWord("decision_profile", c.DecisionProfile, profiles()...)
		if len(c.TrustedProxies) == 0 && c.TrustedHops == 0 {
			d.fail("decision_profile", "needs trusted_proxies: the address of the gateway that asks")
		}
		if c.TrustedHops > 0 && (c.Upstream != "" || len(c.Upstreams) > 0) {
			d.fail("decision_profile", "needs trusted_proxies where there is an upstream: it is then asked at the admin address, and trusted_hops would trust whoever reaches that")
		}
	}
	d.checkTrust(c)
	d.checkWord("log_format", c.LogFormat, "text", "json")
	d.checkWord("log_level", c.LogLevel, "debug", "info", "warn", "error")
	d.checkFields(c.RateLimitFields)
	if err := httplimit.CheckCORSOrigins(c.CORSOrigins); err != nil {
		d.fail("cors_origins", "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if c.Store == nil {
		d.fail("store", "must not be empty: memory: keeps the buckets in the process")
	}
	d.checkPolicyKeys(c)
	d.checkBundle(c)
	d.checkJWT(c)
	d.checkViolations(c)
	d.checkTopKeys(c.TopKeys)
	d.checkDenialLog(c.DenialLog)
	d.checkDenialWebhook(c.DenialWebhook)
	d.checkTelemetry(c.Telemetry)
	if c.MaxHeaderBytes < 1<<10 || c.MaxHeaderBytes > 1<<20 {
		d.fail("max_header_bytes", "must be between 1024 and 1048576, not %d", c.MaxHeaderBytes)
	}
	if c.MaxBodyBytes < 0 {
		d.fail("max_body_bytes", "must be 0 for no bound, or above, not %d", c.MaxBodyBytes)
	}
	d.checkDuration("max_wait", c.MaxWait, time.Millisecond)
	if c.ReloadInterval != 0 {
		d.checkDuration("reload_interval", c.ReloadInterval, 10*time.Millisecond)
	}
	t := c.Timeouts
	d.checkDuration("timeouts.read_header", t.ReadHeader, time.Millisecond)
	d.checkDuration("timeouts.api_request", t.APIRequest, time.Millisecond)
	d.checkDuration("timeouts.idle", t.Idle, time.Millisecond)
	d.checkDuration("timeouts.upstream_connect", t.UpstreamConnect, time.Millisecond)
	d.checkDuration("timeouts.upstream_header", t.UpstreamHeader, time.Millisecond)
	d.checkDuration("timeouts.notice", t.Notice, 0)
	d.checkDuration("timeouts.drain", t.Drain, time.Millisecond)
}

// profiles are the words for decision_profile.
func profiles() []string {
	var words []string
	for _, p := range httpapi.Profiles() {
		words = append(words, string(p))
	}
	return words
}

func (d *decoder) checkAddress(key, address string) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		d.fail(key, "%q is not host:port, such as 127.0.0.1:8080 or :8080", address)
		return
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		d.fail(key, "%q has no port between 0 and 65535", address)
	}
}

// anyPort reports whether the address leaves the port to the system.
func anyPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && port == "0"
}

// checkTrust has the front doors' own check judge each setting by itself.
func (d *decoder) checkTrust(c *Config) {
	for _, part := range []struct {
		key   string
		trust httpfacts.Trust
	}{
		{"trusted_proxies", httpfacts.Trust{Proxies: c.TrustedProxies}},
		{"trusted_hops", httpfacts.Trust{Hops: c.TrustedHops}},
		{"forwarded_header", httpfacts.Trust{Header: c.ForwardedHeader}},
	} {
		if err := part.trust.Check(); err != nil {
			reason, _, _ := strings.Cut(err.Error(), "\n")
			reason = strings.Replace(reason, "use hops", "use trusted_hops", 1) // as it is called here
			d.fail(part.key, "%s", strings.TrimPrefix(reason, httpfacts.ErrTrust.Error()+": "))
		}
	}
	if c.TrustedHops > 0 && len(c.TrustedProxies) > 0 {
		d.fail("trusted_hops", "takes the place of trusted_proxies: say one of them")
	}
	if c.ForwardedHeader == "" {
		d.fail("forwarded_header", "must not be empty: X-Forwarded-For is the usual one")
	}
}

func (d *decoder) checkFields(dialects []string) {
	const key = "rate_limit_fields"
	if len(dialects) == 0 {
		d.fail(key, "is empty: write none to send none")
	}
	if _, err := ratelimitfields.New(ratelimitfields.Config{Dialects: dialects}); err != nil {
		d.fail(key, "%s", strings.TrimPrefix(err.Error(), "ratelimitfields: "))
	}
	for i, dialect := range dialects {
		if slices.Contains(dialects[:i], dialect) {
			d.fail(key, "%s is there twice", dialect)
		}
	}
}

// checkViolations has those judge who use the settings.
func (d *decoder) checkViolations(c *Config) {
	if _, err := policy.ParseAttribute(c.ViolationsUser); err != nil {
		d.fail("violations_user", "must be an attribute, such as jwt:sub, not %q", c.ViolationsUser)
	}
	if c.ViolationsRetention < violations.MinRetention || c.ViolationsRetention > violations.MaxRetention {
		d.fail("violations_retention", "must be between 1h and 100 years, not %v", c.ViolationsRetention)
	}
}

func (d *decoder) checkWord(key, word string, known ...string) {
	if slices.Contains(known, word) {
		return
	}
	last := len(known) - 1
	d.fail(key, "must be %s or %s, not %q", strings.Join(known[:last], ", "), known[last], word)
}

func (d *decoder) checkDuration(key string, v, least time.Duration) {
	if v < least || v > maxTimeout {
		d.fail(key, "must be between %v and %v, not %v", least, maxTimeout, v)
	}
}
