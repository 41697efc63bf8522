// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"slices"

	"github.com/metehq/mete/bucket"
)

const maxTallies = 1 << 16

// A tally counts the requests of one key.
type tally struct {
	id          string
	rule        string
	key         string // as displayed
	first, last bucket.Instant
	count       int64
	missed      int64  // maximum number of requests before it was counted
	place       string // position of its first request in the trace
	request     string // first request, in comparisons only
	order       int64  // order of first appearance
}

// A toplist finds the most frequent keys in bounded memory. It is exact for up to maxTallies keys. Above that, it
// drops the rarer half of the keys. A key that reappears may have missed as many requests as the most frequent
// dropped key.
type toplist struct {
	tallies map[string]*tally
	missed  int64
	order   int64
}

func newToplist() toplist { return toplist{tallies: map[string]*tally{}} }

// add counts a key and returns its tally. The caller must describe a new tally.
func (t *toplist) add(id []byte, at bucket.Instant) (entry *tally, isNew bool) {
	entry, ok := t.tallies[string(id)]
	if !ok {
		if len(t.tallies) >= maxTallies {
			t.prune()
		}
		t.order++
		entry = &tally{id: string(id), missed: t.missed, first: at, last: at, order: t.order}
		t.tallies[entry.id] = entry
	}
	entry.count++
	entry.first, entry.last = min(entry.first, at), max(entry.last, at)
	return entry, !ok
}

// prune drops the rarer half of the keys.
func (t *toplist) prune() {
	all := t.top(len(t.tallies))
	for _, entry := range all[len(all)/2:] {
		t.missed = max(t.missed, entry.count+entry.missed)
		delete(t.tallies, entry.id)
	}
}

// top returns the n most frequent keys in descending order.
func (t *toplist) top(n int) []*tally {
	all := make([]*tally, 0, len(t.tallies))
	for _, entry := range t.tallies {
		all = append(all, entry)
	}
	slices.SortFunc(all, compareTallies)
	return all[:min(n, len(all))]
}

func compareTallies(a, b *tally) int {
	return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.order, b.order))
}
