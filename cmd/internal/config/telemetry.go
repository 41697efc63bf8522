// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/url"
	"time"
)

// Telemetry are the settings for a collector of OpenTelemetry, by OTLP over HTTP. The
// variables of the standard hold for everything else: OTEL_EXPORTER_OTLP_HEADERS,
// OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_BSP_*.
type Telemetry struct {
	Endpoint *url.URL      `yaml:"endpoint" secret:"password"` // nil: nothing is exported
	Headers  []string      `yaml:"headers" secret:"all"`       // name=value
	Sample   float64       `yaml:"sample"`
	Interval time.Duration `yaml:"interval"` // 0: no metrics are exported
}

// DenialLog are the settings for the log of denied requests.
type DenialLog struct {
	Interval time.Duration `yaml:"interval"`  // between two lines of one key; 0: no denial is logged
	MaxLines int           `yaml:"max_lines"` // in a second
	Raw      bool          `yaml:"raw"`       // keys and addresses as they are
}

// DenialWebhook is where denials are posted: the lines of the denial log in JSON, in batches.
// DenialLog has their interval and whether keys are shown. See package webhook.
type DenialWebhook struct {
	URL      *url.URL      `yaml:"url" secret:"all"`     // https, or http at a loopback address; nil: no denial is posted
	Headers  []string      `yaml:"headers" secret:"all"` // name=value
	Secret   string        `yaml:"secret" secret:"all"`  // signs each request; empty: none is signed
	Batch    int           `yaml:"batch"`                // the most lines in one request
	Interval time.Duration `yaml:"interval"`             // the longest wait of a line for its batch
	Queue    int           `yaml:"queue"`                // the most lines that wait; the oldest are dropped
}
