// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// A Config is a checked configuration: domains with their descriptors and limits. It is immutable, and safe for
// concurrent use. Create one with [Parse] or [FromProto]. The zero Config has no domain.
type Config struct {
	domains  map[string]*node
	names    []string // of the domains, in their order
	warnings []string
}

// ConfigOptions holds the settings of [Parse] and [FromProto]. The zero ConfigOptions rejects two files with the
// same domain.
type ConfigOptions struct {
	// MergeDomains merges the descriptors of files with the same domain.
	MergeDomains bool
}

// A node is a level of nested descriptors.
type node struct {
	children  map[string]*node // by composite key: KEY or KEY_VALUE
	order     []*node          // the children in their order
	wildcards []wildcard       // the children with an asterisk in their composite key, in their order
	rule      *rule            // nil for a descriptor without a limit

	composite     string // KEY or KEY_VALUE
	shared        bool   // share_threshold
	valueToMetric bool
}

// A rule is the limit of a descriptor. The limit of a caller is a rule too.
type rule struct {
	name     string // the path of the descriptor: DOMAIN.KEY_VALUE.KEY_VALUE
	limit    *ratelimitv3.RateLimitResponse_RateLimit
	window   window // not set for unlimited rules
	replaces []string
	metadata *structpb.Struct

	unlimited, shadow, quota, detailed bool
	caller                             bool // the limit comes from a request
}

// Domains returns the names of the domains in ascending order.
func (c *Config) Domains() []string { return slices.Sorted(maps.Keys(c.domains)) }

// Warnings returns notes about settings without effect, such as a known key in the wrong place. The reference server
// ignores such settings.
func (c *Config) Warnings() []string { return slices.Clone(c.warnings) }

// Dump returns the limits as text, one per line, in the order of the configuration.
func (c *Config) Dump() string {
	var b strings.Builder
	for _, name := range c.names {
		c.domains[name].dump(&b)
	}
	return b.String()
}

func (n *node) dump(b *strings.Builder) {
	if r := n.rule; r != nil {
		fmt.Fprintf(b, "%s: unit=%v requests_per_unit=%d, shadow_mode: %t, quota_mode: %t\n",
			r.name, r.limit.Unit, r.limit.RequestsPerUnit, r.shadow, r.quota)
	}
	for _, child := range n.order {
		child.dump(b)
	}
}

// rules calls f for every rule with a limit.
func (c *Config) rules(f func(*rule)) {
	var walk func(*node)
	walk = func(n *node) {
		if n.rule != nil {
			f(n.rule)
		}
		for _, child := range n.order {
			walk(child)
		}
	}
	for _, name := range c.names {
		walk(c.domains[name])
	}
}
