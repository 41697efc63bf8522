// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/url"
	"strings"
	"time"
)

const (
	maxTelemetryHeaders = 16
	maxDenialLines      = 1000
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
	if len(t.Headers) > maxTelemetryHeaders {
		d.fail("telemetry.headers", "are %d: at most %d can be", len(t.Headers), maxTelemetryHeaders)
	}
	for i, h := range t.Headers {
		if name, value, ok := strings.Cut(h, "="); !ok || !isToken(name) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			d.fail("telemetry.headers", "number %d is not name=value", i+1)
		}
	}
	if !(t.Sample >= 0 && t.Sample <= 1) { // NaN, too
		d.fail("telemetry.sample", "must be between 0 and 1, not %v", t.Sample)
	}
	if t.Interval != 0 {
		d.checkDuration("telemetry.interval", t.Interval, time.Second)
	}
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
