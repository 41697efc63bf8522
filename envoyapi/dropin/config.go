// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
)

// A Config is a checked configuration: domains with their descriptors and limits. It is immutable, and safe for
// concurrent use. Create one with [Parse] or [FromProto].
type Config struct{}

// A File is a configuration file in YAML or JSON.
type File struct {
	Name string // for errors
	Data []byte
}

// ConfigOptions holds the settings of [Parse] and [FromProto]. The zero ConfigOptions refuses two files with the same
// domain.
type ConfigOptions struct {
	// MergeDomains merges the descriptors of files with the same domain.
	MergeDomains bool
}

// Parse reads configuration files in their order. The error names the file, the line, the wrong value and a remedy.
func Parse(files []File, o ConfigOptions) (*Config, error) { return &Config{}, nil }

// FromProto returns the configuration of a control plane's messages. The error names the message, the place, the
// wrong value and a remedy.
func FromProto(configs []*rlsconf.RateLimitConfig, o ConfigOptions) (*Config, error) {
	return &Config{}, nil
}

// Domains returns the names of the domains in ascending order.
func (c *Config) Domains() []string { return nil }

// Dump returns the limits as text, one per line, in the order of the configuration.
func (c *Config) Dump() string { return "" }
