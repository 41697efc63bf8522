// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"sync"

	"github.com/metehq/mete/envoyapi/dropin"
)

// A target receives the configurations of a source. It is safe for concurrent use.
type target struct {
	service *dropin.Service
	first   chan struct{} // closed after the first configuration
	once    sync.Once
}

func newTarget(s *dropin.Service) *target { return &target{service: s, first: make(chan struct{})} }

// set activates a configuration.
func (t *target) set(c *dropin.Config) {
	t.service.SetConfig(c)
	t.once.Do(func() { close(t.first) })
}

func (t *target) countError() { t.service.CountConfigError() }

func (t *target) countDomains() int {
	if c := t.service.Config(); c != nil {
		return len(c.Domains())
	}
	return 0
}
