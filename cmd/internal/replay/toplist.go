// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"slices"

	"github.com/metehq/mete/bucket"
)

// maxTallies bounds the keys that a toplist counts at a time.
const maxTallies = 1 << 16

// A tally counts what became of one key.
type tally struct {
	id          string
	rule        string
	key         string // for people
	first, last bucket.Instant
	count       int64
	missed      int64  // at most so many came while it was not counted
	place       string // where in the trace the first of them is, and what it was:
	request     string // in comparisons only
	order       int64  // of appearance
}

// A toplist finds the most frequent keys in bounded memory. It is exact up to
// maxTallies keys. When there are more, it forgets the rarer half, and a key
// that is counted again may have missed as much as the most frequent of those.
type toplist struct {
	tallies map[string]*tally
	missed  int64
	order   int64
}

func newToplist() toplist { return toplist{tallies: map[string]*tally{}} }

// add counts the key with that id, and returns its tally. One that is new has yet
// to be described.
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

// prune forgets the rarer half of the keys.
func (t *toplist) prune() {
	all := t.top(len(t.tallies))
	for _, entry := range all[len(all)/2:] {
		t.missed = max(t.missed, entry.count+entry.missed)
		delete(t.tallies, entry.id)
	}
}

// top returns the n most frequent keys, the most frequent first.
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
