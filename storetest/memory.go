// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

const maxMemory = 10_000

// A memory holds the admitted takes of the retry horizon by their names.
type memory struct {
	takes map[string]taken
	order []string // oldest first
}

type taken struct {
	at    bucket.Instant
	snaps []bucket.Snapshot
}

func nameOf(id string, charges []store.Charge) string {
	name := fmt.Sprintf("%q", id)
	for _, c := range charges {
		name += fmt.Sprintf(" %q", c.Key)
	}
	return name
}

func (m *memory) recall(name string, now bucket.Instant) ([]bucket.Snapshot, bool) {
	t, ok := m.takes[name]
	if !ok || now-t.at >= bucket.Instant(store.RetryHorizon/time.Microsecond) {
		return nil, false
	}
	return t.snaps, true
}

func (m *memory) remember(name string, now bucket.Instant, snaps []bucket.Snapshot) {
	if _, again := m.takes[name]; again {
		m.order = slices.DeleteFunc(m.order, func(s string) bool { return s == name })
	}
	if len(m.order) == maxMemory {
		delete(m.takes, m.order[0])
		m.order = m.order[1:]
	}
	m.takes[name] = taken{now, slices.Clone(snaps)}
	m.order = append(m.order, name)
}
