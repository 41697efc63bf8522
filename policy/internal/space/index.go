// SPDX-License-Identifier: Apache-2.0

package space

import (
	"cmp"
	"slices"
	"sort"
)

// An Index finds the boxes that overlap a box in one attribute without comparing all of them. In a group of
// thousands of tiers, a rule overlaps few. The index never misses a box that overlaps in all attributes.
type Index struct {
	boxes []Box
	lines []line
	all   []int32 // the numbers of boxes
}

const maxLines = 4

// A line is one attribute with its values numbered in order. Absence is 0. The k'th cut, where a box begins or
// ends, is k+1.
type line struct {
	slot  int
	cuts  []string
	boxes []span  // sorted by box
	from  []int32 // the index of each box's first span in boxes, and the end
	spans []span  // sorted by lo
	maxHi []int32 // the greatest hi in the part of spans around each middle
	los   []int32 // of spans, ascending
	his   []int32 // of spans, ascending
	free  []int32 // boxes without a side in slot, ascending
}

// A span is a half-open interval [lo, hi) on a line.
type span struct{ lo, hi, of int32 }

// NewIndex returns an index of boxes.
func NewIndex(boxes []Box) *Index {
	sides := map[int]int{}
	for _, b := range boxes {
		for _, s := range b {
			sides[s.Slot]++
		}
	}
	var slots []int
	for slot := range sides {
		slots = append(slots, slot)
	}
	slices.SortFunc(slots, func(a, b int) int { return cmp.Or(cmp.Compare(sides[b], sides[a]), cmp.Compare(a, b)) })
	o := &Index{boxes: boxes, all: make([]int32, len(boxes))}
	for i := range boxes {
		o.all[i] = int32(i)
	}
	for _, slot := range slots[:min(len(slots), maxLines)] {
		o.lines = append(o.lines, newLine(slot, boxes))
	}
	return o
}

func newLine(slot int, boxes []Box) line {
	l := line{slot: slot}
	for _, b := range boxes {
		if i, ok := b.find(slot); ok {
			l.cuts = append(l.cuts, b[i].Set.hull()...)
		}
	}
	slices.Sort(l.cuts)
	l.cuts = slices.Compact(l.cuts)
	for i, b := range boxes {
		l.from = append(l.from, int32(len(l.boxes)))
		if at, ok := b.find(slot); ok {
			l.boxes = l.appendSpans(l.boxes, b[at].Set, int32(i))
		} else {
			l.free = append(l.free, int32(i))
		}
	}
	l.from = append(l.from, int32(len(l.boxes)))
	l.spans = slices.Clone(l.boxes)
	slices.SortFunc(l.spans, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	for _, s := range l.spans {
		l.los, l.his = append(l.los, s.lo), append(l.his, s.hi)
	}
	slices.Sort(l.his)
	l.maxHi = make([]int32, len(l.spans))
	l.computeMaxHi(0, len(l.spans))
	return l
}

func (l *line) appendSpans(spans []span, s Set, of int32) []span {
	if s.missing {
		spans = append(spans, span{0, 1, of})
	}
	cuts := s.hull()
	for i := 0; i < len(cuts); i += 2 {
		hi := int32(len(l.cuts)) + 1
		if i+1 < len(cuts) {
			hi = l.number(cuts[i+1])
		}
		spans = append(spans, span{l.number(cuts[i]), hi, of})
	}
	return spans
}

func (l *line) number(cut string) int32 {
	at, _ := slices.BinarySearch(l.cuts, cut)
	return int32(at) + 1
}

func (l *line) computeMaxHi(from, to int) int32 {
	if from >= to {
		return 0
	}
	middle := (from + to) / 2
	l.maxHi[middle] = max(l.spans[middle].hi, l.computeMaxHi(from, middle), l.computeMaxHi(middle+1, to))
	return l.maxHi[middle]
}

func (l *line) countOverlaps(q span) int {
	begun := sort.Search(len(l.los), func(i int) bool { return l.los[i] >= q.hi })
	over := sort.Search(len(l.his), func(i int) bool { return l.his[i] > q.lo })
	return begun - over
}

// appendOverlaps appends the boxes with a span between from and to that overlaps q.
func (l *line) appendOverlaps(found []int32, q span, from, to int) []int32 {
	middle := (from + to) / 2
	if from >= to || l.maxHi[middle] <= q.lo {
		return found
	}
	found = l.appendOverlaps(found, q, from, middle)
	s := l.spans[middle]
	if s.lo >= q.hi {
		return found
	}
	if s.hi > q.lo {
		found = append(found, s.of)
	}
	return l.appendOverlaps(found, q, middle+1, to)
}

// Around returns the boxes that may contain all of the i'th box, ascending and without duplicates.
func (o *Index) Around(i int) []int32 {
	return o.query(i, func(l *line, spans []span) []span { // a box that contains the i'th box contains each of its values
		lo := spans[0].lo
		if at, ok := o.boxes[i].find(l.slot); ok {
			// With terms, the hull can begin with a value that the set lacks.
			if set := o.boxes[i][at].Set; len(set.terms) > 0 && !set.missing {
				if value, known := set.firstOrSample(); known {
					lo = int32(countUpTo(l.cuts, value))
				}
			}
		}
		return []span{{lo, lo + 1, 0}}
	})
}

// Beside returns the boxes that may overlap the i'th, ascending and without duplicates.
func (o *Index) Beside(i int) []int32 {
	return o.query(i, func(_ *line, spans []span) []span { return spans })
}

// query uses the line with the fewest candidates. spansOf returns the spans to look up for the i'th box. The caller
// must not modify the result.
func (o *Index) query(i int, spansOf func(*line, []span) []span) []int32 {
	var best *line
	var by []span
	least := len(o.boxes) / 4 // beyond this, scanning all boxes in order is as fast
	for at := range o.lines {
		l := &o.lines[at]
		spans := l.boxes[l.from[i]:l.from[i+1]]
		if len(spans) == 0 {
			continue
		}
		spans = spansOf(l, spans)
		n := len(l.free)
		for _, q := range spans {
			n += l.countOverlaps(q)
		}
		if n < least {
			best, by, least = l, spans, n
		}
	}
	if best == nil {
		return o.all
	}
	found := slices.Clone(best.free)
	for _, q := range by {
		found = best.appendOverlaps(found, q, 0, len(best.spans))
	}
	slices.Sort(found)
	return slices.Compact(found)
}
