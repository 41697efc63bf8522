// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"sync"

	"github.com/metehq/mete/internal/pacer"
)

// maxPacers bounds the keys of a [Transport].
const maxPacers = 1024

// pacers are those of a Transport, by key. The zero value has none.
type pacers struct {
	mu    sync.Mutex // guards the fields below
	byKey map[string]*pacer.Pacer
	rest  *pacer.Pacer // of all keys beyond the bound
}

// of returns the pacer of that key. At the bound those that are idle are
// forgotten; where none is, new keys share one.
func (p *pacers) of(key string) *pacer.Pacer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found := p.byKey[key]; found != nil {
		return found
	}
	if len(p.byKey) >= maxPacers {
		for old, candidate := range p.byKey {
			if candidate.Idle() {
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
