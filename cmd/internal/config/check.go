// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/cmd/internal/bundle"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/jwtclaims"
	"github.com/metehq/mete/pgstore/violations"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/topkeys"
)

// Bounds of settings.
const (
	maxTimeout      = 24 * time.Hour // longer than any sensible timeout
	maxConnections  = 1 << 20
	maxDelayed      = 1_000_000        // each delayed request needs a goroutine
	maxLeeway       = 10 * time.Minute // same as in package jwtclaims
	maxHeaders      = 16               // for telemetry and webhooks
	maxWebhookBatch = 1000
	maxWebhookQueue = 100_000
	maxDenialLines  = 1000
)

func (d *decoder) check(c *Config) {
	d.checkAddresses(c)
	d.checkAdmin(c)
	d.checkBounds(c)
	d.checkUpstreams(c)
	d.checkTrust(c)
	d.checkFields(c.RateLimitFields)
	if err := httplimit.CheckCORSOrigins(c.CORSOrigins); err != nil {
		d.fail("cors_origins", "%s", joinLines(err))
	}
	if c.Store == nil {
		d.fail("store", "must not be empty: memory: keeps the buckets in the process")
	}
	d.checkPolicy(c)
	d.checkJWT(c)
	if _, err := policy.ParseAttribute(c.ViolationsUser); err != nil {
		d.fail("violations_user", "must be an attribute, such as jwt:sub, not %q", c.ViolationsUser)
	}
	d.checkTelemetry(c.Telemetry)
	d.checkDenialWebhook(c.DenialWebhook)
}

// checkRange checks that low <= v <= high. NaN is out of range.
func checkRange[T cmp.Ordered](d *decoder, key string, v, low, high T) {
	if !(v >= low && v <= high) {
		d.fail(key, "must be between %v and %v, not %v", low, high, v)
	}
}

func (d *decoder) checkBounds(c *Config) {
	checkRange(d, "max_connections", c.MaxConnections, 1, maxConnections)
	checkRange(d, "grpc_max_connections", c.GRPCMaxConnections, 1, maxConnections)
	checkRange(d, "resp_max_connections", c.RESPMaxConnections, 1, maxConnections)
	checkRange(d, "max_in_flight", c.MaxInFlight, 1, maxConnections)
	checkRange(d, "max_delayed", c.MaxDelayed, 1, maxDelayed)
	checkRange(d, "max_header_bytes", c.MaxHeaderBytes, 1<<10, 1<<20)
	checkRange(d, "top_keys", c.TopKeys, 0, topkeys.MaxCounters)
	checkRange(d, "max_wait", c.MaxWait, time.Millisecond, maxTimeout)
	checkRange(d, "denial_log.max_lines", c.DenialLog.MaxLines, 1, maxDenialLines)
	checkRange(d, "telemetry.sample", c.Telemetry.Sample, 0, 1)
	checkRange(d, "adaptive.tolerance", c.Adaptive.Tolerance, 1, 100)
	checkRange(d, "adaptive.floor", c.Adaptive.Floor, 0.0001, 1)
	checkRange(d, "adaptive.interval", c.Adaptive.Interval, time.Millisecond, time.Hour)
	checkRange(d, "adaptive.target", c.Adaptive.Target, 0, time.Hour)
	checkRange(d, "jwt.leeway", c.JWT.Leeway, 0, maxLeeway)
	if c.MaxBodyBytes < 0 {
		d.fail("max_body_bytes", "must be 0 for no bound, or above, not %d", c.MaxBodyBytes)
	}
	if v := c.ViolationsRetention; v < violations.MinRetention || v > violations.MaxRetention {
		d.fail("violations_retention", "must be between 1h and 100 years, not %v", v)
	}
	for _, off := range []struct { // 0 disables these
		key      string
		v, least time.Duration
	}{
		{"reload_interval", c.ReloadInterval, 10 * time.Millisecond},
		{"telemetry.interval", c.Telemetry.Interval, time.Second},
		{"denial_log.interval", c.DenialLog.Interval, time.Second},
		{"denial_webhook.interval", c.DenialWebhook.Interval, 100 * time.Millisecond},
	} {
		if off.v != 0 {
			checkRange(d, off.key, off.v, off.least, maxTimeout)
		}
	}
	t := c.Timeouts
	checkRange(d, "timeouts.read_header", t.ReadHeader, time.Millisecond, maxTimeout)
	checkRange(d, "timeouts.api_request", t.APIRequest, time.Millisecond, maxTimeout)
	checkRange(d, "timeouts.idle", t.Idle, time.Millisecond, maxTimeout)
	checkRange(d, "timeouts.grpc_idle", t.GRPCIdle, time.Millisecond, maxTimeout)
	checkRange(d, "timeouts.resp_idle", t.RESPIdle, 0, maxTimeout)
	checkRange(d, "timeouts.upstream_connect", t.UpstreamConnect, time.Millisecond, maxTimeout)
	checkRange(d, "timeouts.upstream_header", t.UpstreamHeader, time.Millisecond, maxTimeout)
	checkRange(d, "timeouts.upstream_body", t.UpstreamBody, 0, maxTimeout)
	checkRange(d, "timeouts.client_body", t.ClientBody, 0, maxTimeout)
	checkRange(d, "timeouts.upgraded", t.Upgraded, 0, maxTimeout)
	checkRange(d, "timeouts.notice", t.Notice, 0, maxTimeout)
	checkRange(d, "timeouts.drain", t.Drain, time.Millisecond, maxTimeout)

	d.checkWord("underscores_in_headers", c.UnderscoresInHeaders, "drop", "pass", "refuse")
	d.checkWord("log_format", c.LogFormat, "text", "json")
	d.checkWord("log_level", c.LogLevel, "debug", "info", "warn", "error")
	if c.DecisionProfile != "" {
		var words []string
		for _, p := range httpapi.Profiles() {
			words = append(words, string(p))
		}
		d.checkWord("decision_profile", c.DecisionProfile, words...)
	}
	if c.Adaptive.Law != "" {
		d.checkWord("adaptive.law", c.Adaptive.Law, "aimd", "gradient")
	}
}

func (d *decoder) checkWord(key, word string, known ...string) {
	if !slices.Contains(known, word) {
		last := len(known) - 1
		d.fail(key, "must be %s or %s, not %q", strings.Join(known[:last], ", "), known[last], word)
	}
}

// checkAddresses checks that the addresses are valid and differ. It completes optional addresses that are only a port.
func (d *decoder) checkAddresses(c *Config) {
	completePort(&c.GRPCListen)
	completePort(&c.RESPListen)
	settings := map[string]string{} // by address
	for _, at := range []struct{ key, address string }{
		{"listen", c.Listen}, {"admin_listen", c.AdminListen}, {"grpc_listen", c.GRPCListen}, {"resp_listen", c.RESPListen},
	} {
		if at.address == "" && (at.key == "grpc_listen" || at.key == "resp_listen") {
			continue
		}
		d.checkAddress(at.key, at.address)
		if other, taken := settings[at.address]; taken && !anyPort(at.address) {
			d.fail(at.key, "is the same address as %s: the two must differ", other)
		}
		settings[at.address] = at.key
	}
}

// completePort makes a port without a host a loopback address.
func completePort(address *string) {
	if _, err := strconv.ParseUint(*address, 10, 16); err == nil {
		*address = net.JoinHostPort("127.0.0.1", *address)
	}
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

// anyPort reports whether the system chooses the port of the address.
func anyPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && port == "0"
}

func (d *decoder) checkPolicy(c *Config) {
	switch signed := len(c.PolicyKeys) > 0; {
	case signed && c.PolicyDatabase != nil:
		d.fail("policy_keys", "requires a policy file: rules in a database are not signed")
	case signed && c.Policy == "":
		d.fail("policy_keys", "needs a policy file: the built-in example is not signed")
	case !signed && c.PolicyBundle != nil:
		d.fail("policy_keys", "must name a public key: a policy at an address needs a signature")
	}
	if c.PolicyBundle == nil && c.PolicyCA != "" {
		d.fail("policy_ca", "requires a policy at an https:// address")
	}
	if c.PolicyBundle != nil && c.StateDirectory == "" {
		d.fail("state_directory", "must name a directory: the last good policy is kept there for restarts")
	}
}

// checkTrust checks each setting with package httpfacts.
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
			reason = strings.Replace(reason, "use hops", "use trusted_hops", 1) // the name of the setting in this package
			d.fail(part.key, "%s", strings.TrimPrefix(reason, httpfacts.ErrTrust.Error()+": "))
		}
	}
	if c.TrustedHops > 0 && len(c.TrustedProxies) > 0 {
		d.fail("trusted_hops", "excludes trusted_proxies: set one of them")
	}
	if c.ForwardedHeader == "" {
		d.fail("forwarded_header", "must not be empty: X-Forwarded-For is the usual one")
	}
	switch {
	case c.DecisionProfile == "":
	case len(c.TrustedProxies) == 0 && c.TrustedHops == 0:
		d.fail("decision_profile", "needs trusted_proxies: the address of the gateway that asks")
	case c.TrustedHops > 0 && c.IsGateway():
		d.fail("decision_profile", "needs trusted_proxies together with an upstream: gateways then call the admin address, and trusted_hops would trust all its clients")
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
			d.fail(key, "%s is listed twice", dialect)
		}
	}
}

// checkJWT checks the settings with package jwtclaims.
func (d *decoder) checkJWT(c *Config) {
	if err := jwtclaims.CheckAlgorithms(c.JWT.Algorithms); err != nil {
		d.fail("jwt.algorithms", "%s", strings.TrimPrefix(err.Error(), "jwtclaims: "))
	}
	if len(c.JWT.Algorithms) == 0 {
		d.fail("jwt.algorithms", "is empty: RS256 and ES256 are the usual ones")
	}
	if c.JWT.Keys == "" {
		if c.JWT.Issuer != "" || len(c.JWT.Audience) > 0 {
			d.fail("jwt.keys", "must name the key set: without one, issuer and audience are not checked")
		}
		return
	}
	if err := jwtclaims.CheckKeySet(c.JWT.Keys); err != nil {
		d.fail("jwt.keys", "%s", strings.TrimPrefix(err.Error(), "jwtclaims: key set: "))
	}
	if c.TrustJWT {
		d.fail("trust_jwt", "excludes jwt.keys: tokens are either verified or trusted")
	}
}

// checkTelemetry checks the settings. Its errors never contain the headers, which are secrets.
func (d *decoder) checkTelemetry(t Telemetry) {
	switch u := t.Endpoint; {
	case u == nil:
	case u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		d.fail("telemetry.endpoint", "is not a URL such as http://127.0.0.1:4318")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		d.fail("telemetry.endpoint", "must be a scheme, a host and perhaps a path; secrets belong in telemetry.headers")
	}
	d.checkHeaders("telemetry.headers", t.Headers)
}

// checkHeaders checks header fields. Its errors never contain them.
func (d *decoder) checkHeaders(key string, headers []string) {
	if len(headers) > maxHeaders {
		d.fail(key, "has %d entries: at most %d are allowed", len(headers), maxHeaders)
	}
	for i, h := range headers {
		if name, value, ok := strings.Cut(h, "="); !ok || !isToken(name) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			d.fail(key, "number %d is not name=value", i+1)
		}
	}
}

// checkDenialWebhook checks the settings. Its errors never contain the address, the headers or the secret.
func (d *decoder) checkDenialWebhook(w DenialWebhook) {
	switch u := w.URL; {
	case u == nil:
	case u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		d.fail("denial_webhook.url", "is not a URL such as https://siem.example.com/denials")
	case u.User != nil || u.Fragment != "":
		d.fail("denial_webhook.url", "must have no user and no fragment; secrets belong in denial_webhook.headers")
	case u.Scheme == "http" && !bundle.IsLoopback(u.Hostname()):
		d.fail("denial_webhook.url", "must be https://: http:// is allowed only for loopback addresses")
	}
	d.checkHeaders("denial_webhook.headers", w.Headers)
	checkRange(d, "denial_webhook.batch", w.Batch, 1, maxWebhookBatch)
	if w.Queue < w.Batch || w.Queue > maxWebhookQueue {
		d.fail("denial_webhook.queue", "must be between denial_webhook.batch and %d, not %d", maxWebhookQueue, w.Queue)
	}
}

// isToken reports whether s is a valid name of a header field (RFC 9110 §5.6.2).
func isToken(s string) bool {
	return s != "" && strings.Trim(s, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

func joinLines(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
