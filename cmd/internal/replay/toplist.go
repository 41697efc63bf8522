// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"slices"

	"github.com/metehq/mete/bucket"
)

// maxTallies bounds the keys that a toplist counts at a time.
const maxTallies = 1 << 16

// A tally counts the denials of one key.
type tally struct {
	rule        *ruleStats
	key         string // for people
	count       int64
	missed      int64 // at most so many denials came while it was not counted
	first, last bucket.Instant
	order       int64 // of appearance
}

// A toplist finds the most frequent keys in bounded memory. It is exact up to
// maxTallies keys. When there are more, it forgets the rarer half, and a key
// that is counted again may have missed as much as the most frequent of those.
type toplist struct {
	tallies map[string]*tally
	missed  int64
	order   int64
}

// add counts a denial of the key with that id. The key is described only when
// it is new.
func (t *toplist) add(id []byte, at bucket.Instant, rule *ruleStats, describe func() string) {
	entry, ok := t.tallies[string(id)]
	if !ok {
		if len(t.tallies) >= maxTallies {
			t.prune()
		}
		t.order++
		entry = &tally{rule: rule, key: describe(), missed: t.missed, first: at, last: at, order: t.order}
		t.tallies[string(id)] = entry
	}
	entry.count++
	entry.first, entry.last = min(entry.first, at), max(entry.last, at)
}

// prune forgets the rarer half of the keys.
func (t *toplist) prune() {
	ids := make([]string, 0, len(t.tallies))
	for id := range t.tallies {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return compareTallies(t.tallies[a], t.tallies[b]) })
	for _, id := range ids[len(ids)/2:] {
		entry := t.tallies[id]
		t.missed = max(t.missed, entry.count+entry.missed)
		delete(t.tallies, id)
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
