// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	"fmt"
	"strings"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

const unitWords = "second, minute, hour, day, week, month or year"

// compile checks sources and returns their configuration. The rules are those of the reference server
// (envoyproxy/ratelimit, README.md and src/config/config_impl.go).
func compile(sources []*source, warnings []string, o ConfigOptions) (*Config, error) {
	c := &Config{domains: map[string]*node{}, warnings: warnings}
	for _, s := range sources {
		if s.domain == "" {
			return nil, s.at.fail("set domain to the domain of the rate limit filter in Envoy", "the domain is missing or empty")
		}
		top, known := c.domains[s.domain]
		switch {
		case !known:
			top = &node{children: map[string]*node{}}
			c.domains[s.domain], c.names = top, append(c.names, s.domain)
		case !o.MergeDomains:
			return nil, s.at.fail("use one file per domain, or allow merging with MERGE_DOMAIN_CONFIG=true", "domain %q is already configured", s.domain)
		}
		if err := top.addAll(s.descriptors, s.domain+"."); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// addAll adds descriptors below n. Names begin with prefix.
func (n *node) addAll(descriptors []descriptorSource, prefix string) error {
	for i := range descriptors {
		if err := n.add(&descriptors[i], prefix); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) add(d *descriptorSource, prefix string) error {
	if d.key == "" {
		return d.at.fail("set key to the key of an entry in Envoy's descriptor", "the descriptor has no key")
	}
	composite := d.key
	if d.value != "" {
		composite += "_" + d.value
	}
	if _, known := n.children[composite]; known {
		return d.at.fail("remove one of the two descriptors, or change its key or value", "descriptor %q is already configured", prefix+composite)
	}
	isWildcard := strings.Contains(composite, "*")
	if d.shared && !isWildcard {
		return d.at.fail("add an asterisk to the value, or remove share_threshold", "share_threshold requires a wildcard: %q has no asterisk", composite)
	}
	child := &node{children: map[string]*node{}, composite: composite, shared: d.shared, valueToMetric: d.valueToMetric}
	if d.limit != nil {
		var err error
		if child.rule, err = d.compileLimit(prefix + composite); err != nil {
			return err
		}
	}
	if isWildcard {
		n.wildcards = append(n.wildcards, newWildcard(child))
	}
	n.children[composite], n.order = child, append(n.order, child)
	return child.addAll(d.descriptors, prefix+composite+".")
}

func (d *descriptorSource) compileLimit(name string) (*rule, error) {
	l := d.limit
	unit := ratelimitv3.RateLimitResponse_RateLimit_Unit(ratelimitv3.RateLimitResponse_RateLimit_Unit_value[strings.ToUpper(l.unit)])
	known := unit != ratelimitv3.RateLimitResponse_RateLimit_UNKNOWN
	switch {
	case l.unlimited && known:
		return nil, l.at.fail("remove the unit or unlimited", "an unlimited limit has the unit %q", l.unit)
	case !l.unlimited && l.unit == "":
		return nil, l.at.fail("write "+unitWords, "the unit is missing")
	case !l.unlimited && !known:
		return nil, l.at.fail("write "+unitWords, "unit %q is unknown", l.unit)
	}
	r := &rule{
		name:  name,
		limit: &ratelimitv3.RateLimitResponse_RateLimit{RequestsPerUnit: l.requests, Unit: unit, Name: l.name},
		// The reference server drops the metadata of limits with detailed_metric or value_to_metric.
		metadata:  d.metadata,
		unlimited: l.unlimited, shadow: d.shadow, quota: d.quota, detailed: d.detailed,
	}
	if !l.unlimited {
		w, err := newWindow(unit, 1)
		if err != nil {
			return nil, fmt.Errorf("dropin: %s: %w", name, err)
		}
		r.window = w
	}
	for _, other := range l.replaces {
		switch other.name {
		case "":
			return nil, other.at.fail("set name to the name of another limit", "an entry of replaces has no name")
		case l.name:
			return nil, other.at.fail("name another limit, or remove the entry", "limit %q replaces itself", l.name)
		}
		r.replaces = append(r.replaces, other.name)
	}
	return r, nil
}
