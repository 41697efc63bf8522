// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/url"
	"time"
)

// Telemetry says what a collector of OpenTelemetry is told, by OTLP over HTTP.
// What is not said here is as the standard's variables say: OTEL_EXPORTER_OTLP_HEADERS,
// _CERTIFICATE, _COMPRESSION, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_BSP_*.
type Telemetry struct {
	// Endpoint is the base URL of the collector; traces go to /v1/traces below it,
	// metrics to /v1/metrics. Nil: nobody is told anything, and it costs nothing.
	Endpoint *url.URL `yaml:"endpoint" secret:"password"`

	// Headers go with each export, as name=value, at most 16. They may not have commas.
	Headers []string `yaml:"headers" secret:"all"`

	// Sample is the part of requests that is traced where nobody has decided that
	// before, 0 to 1. A request that brings a traceparent is traced where that says so.
	Sample float64 `yaml:"sample"`

	// Interval is the time between two exports of the metrics, at least a second. 0:
	// none are exported.
	Interval time.Duration `yaml:"interval"`
}

// DenialLog says how denied requests are logged: the first denial of a key at once,
// and then one line each Interval with the number of denials it stands for.
type DenialLog struct {
	// Interval is the time between two lines of one key, at least a second. 0: no
	// denial is logged.
	Interval time.Duration `yaml:"interval"`

	// MaxLines is the most lines in a second, of all keys.
	MaxLines int `yaml:"max_lines"`

	// Raw logs keys and addresses as they are. False: keys are hashed, addresses cut
	// to /24 and /48.
	Raw bool `yaml:"raw"`
}
