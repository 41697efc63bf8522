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
