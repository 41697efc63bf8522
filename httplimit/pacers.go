// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"sync"

	"github.com/metehq/mete/internal/pacer"
)

const maxPacers = 1024

// pacers holds the pacers of a Transport by key. The zero value is empty.
type pacers struct {
	mu    sync.Mutex // guards the fields below
	byKey map[string]*pacer.Pacer
	rest  *pacer.Pacer // shared by all keys that do not fit
}

// get returns the pacer for key. At the bound it evicts idle pacers; if none is idle, new keys share one pacer.
func (p *pacers) get(key string) *pacer.Pacer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found := p.byKey[key]; found != nil {
		return found
	}
	if len(p.byKey) >= maxPacers {
		for old, candidate := range p.byKey {
			if candidate.IsIdle() {
				delete(p.byKey, old)
			}
		}
	}
	if len(p.byKey) >= maxPacers {
		if p.rest == nil {
			p.rest = pacer.New()
		}
		return p.rest
	}
	if p.byKey == nil {
		p.byKey = map[string]*pacer.Pacer{}
	}
	made := pacer.New()
	p.byKey[key] = made
	return made
}
