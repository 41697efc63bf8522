// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/url"
	"strings"
	"time"

	"github.com/metehq/mete/cmd/internal/bundle"
)

const (
	maxHeaders      = 16 // of telemetry and webhooks
	maxDenialLines  = 1000
	maxWebhookBatch = 1000
	maxWebhookQueue = 100_000
)

// checkTelemetry never shows the headers, which are secrets.
func (d *decoder) checkTelemetry(t Telemetry) {
	if t.Endpoint != "" {
		switch u, err := url.Parse(t.Endpoint); {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			d.fail("telemetry.endpoint", "is not a URL such as http://127.0.0.1:4318")
		case u.User != nil || u.RawQuery != "" || u.Fragment != "":
			d.fail("telemetry.endpoint", "must be a scheme, a host and perhaps a path; secrets belong in telemetry.headers")
		}
	}
	d.checkHeaders("telemetry.headers", t.Headers)
	if !(t.Sample >= 0 && t.Sample <= 1) { // NaN, too
		d.fail("telemetry.sample", "must be between 0 and 1, not %v", t.Sample)
	}
	if t.Interval != 0 {
		d.checkDuration("telemetry.interval", t.Interval, time.Second)
	}
}

// checkHeaders checks header fields that go with each request. It never shows them.
func (d *decoder) checkHeaders(key string, headers []string) {
	if len(headers) > maxHeaders {
		d.fail(key, "are %d: at most %d can be", len(headers), maxHeaders)
	}
	for i, h := range headers {
		if name, value, ok := strings.Cut(h, "="); !ok || !isToken(name) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			d.fail(key, "number %d is not name=value", i+1)
		}
	}
}

// checkDenialWebhook never shows the address, the headers or the secret.
func (d *decoder) checkDenialWebhook(w DenialWebhook) {
	if w.URL != "" {
		switch u, err := url.Parse(w.URL); {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			d.fail("denial_webhook.url", "is not a URL such as https://siem.example.com/denials")
		case u.User != nil || u.Fragment != "":
			d.fail("denial_webhook.url", "must have no user and no fragment; secrets belong in denial_webhook.headers")
		case u.Scheme == "http" && !bundle.IsLoopback(u.Hostname()):
			d.fail("denial_webhook.url", "must be https://: http:// is for loopback addresses alone")
		}
	}
	d.checkHeaders("denial_webhook.headers", w.Headers)
	if w.Batch < 1 || w.Batch > maxWebhookBatch {
		d.fail("denial_webhook.batch", "must be between 1 and %d, not %d", maxWebhookBatch, w.Batch)
	}
	if w.Queue < w.Batch || w.Queue > maxWebhookQueue {
		d.fail("denial_webhook.queue", "must be between denial_webhook.batch and %d, not %d", maxWebhookQueue, w.Queue)
	}
	d.checkDuration("denial_webhook.interval", w.Interval, 100*time.Millisecond)
}

// isToken reports whether s can be the name of a header field (RFC 9110 §5.6.2).
func isToken(s string) bool {
	return s != "" && strings.Trim(s, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

func (d *decoder) checkDenialLog(l DenialLog) {
	if l.Interval != 0 {
		d.checkDuration("denial_log.interval", l.Interval, time.Second)
	}
	if l.MaxLines < 1 || l.MaxLines > maxDenialLines {
		d.fail("denial_log.max_lines", "must be between 1 and %d, not %d", maxDenialLines, l.MaxLines)
	}
}
