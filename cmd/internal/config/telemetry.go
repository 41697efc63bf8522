// SPDX-License-Identifier: Apache-2.0

package config

import "time"

// Telemetry says what a collector of OpenTelemetry is told, by OTLP over HTTP.
// What is not said here is as the standard's variables say: OTEL_EXPORTER_OTLP_HEADERS,
// _CERTIFICATE, _COMPRESSION, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_BSP_*.
type Telemetry struct {
	// Endpoint is the base URL of the collector; traces go to /v1/traces below it,
	// metrics to /v1/metrics. Empty: nobody is told anything, and it costs nothing.
	Endpoint string `yaml:"endpoint"`

	// Headers go with each export, as name=value, at most 16. They may not have commas.
	Headers []string `yaml:"headers"`

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

// DenialWebhook is where denials are posted: the lines of the denial log in JSON, in batches.
// DenialLog has their interval and whether keys are shown. See package webhook.
type DenialWebhook struct {
	// URL is https://, or http:// at a loopback address. Empty: no denial is posted.
	URL string `yaml:"url"`

	// Headers go with each request, as name=value, at most 16. They may not have commas.
	Headers []string `yaml:"headers"`

	// Secret signs each request. Empty: no request is signed.
	Secret string `yaml:"secret"`

	// Batch is the most lines in one request.
	Batch int `yaml:"batch"`

	// Interval is the longest wait of a line for its batch, at least 100ms.
	Interval time.Duration `yaml:"interval"`

	// Queue is the most lines that wait. The oldest are dropped.
	Queue int `yaml:"queue"`
}
