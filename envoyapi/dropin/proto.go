// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	"fmt"

	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
)

// FromProto returns the configuration of a control plane's messages, in their order. The error is a [*ConfigError]
// with the message's name, the path of the descriptor, the wrong value and a remedy. The messages have no
// value_to_metric and no share_threshold.
func FromProto(configs []*rlsconf.RateLimitConfig, o ConfigOptions) (*Config, error) {
	var sources []*source
	for i, c := range configs {
		name := c.GetName()
		if name == "" {
			name = fmt.Sprintf("resource %d", i)
		}
		sources = append(sources, &source{
			at: place{file: name}, domain: c.GetDomain(), descriptors: convertDescriptors(name, "", c.GetDescriptors()),
		})
	}
	return compile(sources, nil, o)
}

func convertDescriptors(file, parent string, all []*rlsconf.RateLimitDescriptor) []descriptorSource {
	var made []descriptorSource
	for i, d := range all {
		at := place{file: file, path: fmt.Sprintf("%sdescriptors[%d]", parent, i)}
		made = append(made, descriptorSource{
			at: at, key: d.GetKey(), value: d.GetValue(), limit: convertLimit(at, d.GetRateLimit()),
			descriptors: convertDescriptors(file, at.path+".", d.GetDescriptors()),
			shadow:      d.GetShadowMode(), quota: d.GetQuotaMode(), detailed: d.GetDetailedMetric(), metadata: d.GetMetadata(),
		})
	}
	return made
}

func convertLimit(at place, p *rlsconf.RateLimitPolicy) *limitSource {
	if p == nil {
		return nil
	}
	at.path += ".rate_limit"
	l := &limitSource{at: at, requests: p.GetRequestsPerUnit(), unit: p.GetUnit().String(), unlimited: p.GetUnlimited(), name: p.GetName()}
	for i, other := range p.GetReplaces() {
		place := at
		place.path += fmt.Sprintf(".replaces[%d]", i)
		l.replaces = append(l.replaces, replacementSource{place, other.GetName()})
	}
	return l
}
