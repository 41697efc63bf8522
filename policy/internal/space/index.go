// SPDX-License-Identifier: Apache-2.0

package space

import (
	"cmp"
	"slices"
	"sort"
)

// An Index finds, among boxes, those that a box meets in one of its sides,
// without looking at the others: in a group of thousands of tiers a rule meets
// few. It leaves out no box that is not apart from the one that is asked about.
type Index struct {
	boxes []Box
	lines []line
	all   []int32 // the numbers of boxes
}

// maxLines bounds the attributes by which an Index can tell boxes apart.
const maxLines = 4

// A line is one attribute, its values in order as numbers: absence is 0, and the
// k'th of the cuts where any of the boxes begins or ends is k+1.
type line struct {
	slot  int
	cuts  []string
	boxes []span  // of one box after the other
	from  []int32 // where those of a box begin in boxes, and where the last ones end
	spans []span  // by lo
	most  []int32 // the greatest hi of the part of spans that a place is the middle of
	los   []int32 // of spans, ascending
	his   []int32 // of spans, ascending
	free  []int32 // boxes that have no side there, ascending
}

// A span is what lies between two values of a line, hi not included.
type span struct{ lo, hi, of int32 }

// NewIndex indexes boxes.
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
			l.cuts = append(l.cuts, b[i].Set.cuts...)
		}
	}
	slices.Sort(l.cuts)
	l.cuts = slices.Compact(l.cuts)
	for i, b := range boxes {
		l.from = append(l.from, int32(len(l.boxes)))
		if at, ok := b.find(slot); ok {
			l.boxes = l.append(l.boxes, b[at].Set, int32(i))
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
	l.most = make([]int32, len(l.spans))
	l.measure(0, len(l.spans))
	return l
}

// append appends the spans of a set whose cuts are l's.
func (l *line) append(spans []span, s Set, of int32) []span {
	if s.missing {
		spans = append(spans, span{0, 1, of})
	}
	for i := 0; i < len(s.cuts); i += 2 {
		hi := int32(len(l.cuts)) + 1
		if i+1 < len(s.cuts) {
			hi = l.number(s.cuts[i+1])
		}
		spans = append(spans, span{l.number(s.cuts[i]), hi, of})
	}
	return spans
}

func (l *line) number(cut string) int32 {
	at, _ := slices.BinarySearch(l.cuts, cut)
	return int32(at) + 1
}

// measure fills in most for a part of spans.
func (l *line) measure(from, to int) int32 {
	if from >= to {
		return 0
	}
	middle := (from + to) / 2
	l.most[middle] = max(l.spans[middle].hi, l.measure(from, middle), l.measure(middle+1, to))
	return l.most[middle]
}

// count is how many spans q meets.
func (l *line) count(q span) int {
	begun := sort.Search(len(l.los), func(i int) bool { return l.los[i] >= q.hi })
	over := sort.Search(len(l.his), func(i int) bool { return l.his[i] > q.lo })
	return begun - over
}

// meet appends the boxes of a part of spans that q meets.
func (l *line) meet(found []int32, q span, from, to int) []int32 {
	middle := (from + to) / 2
	if from >= to || l.most[middle] <= q.lo {
		return found
	}
	found = l.meet(found, q, from, middle)
	s := l.spans[middle]
	if s.lo >= q.hi {
		return found
	}
	if s.hi > q.lo {
		found = append(found, s.of)
	}
	return l.meet(found, q, middle+1, to)
}

// Around returns the boxes, ascending and each once, that may hold all of the
// i'th box.
func (o *Index) Around(i int) []int32 {
	return o.fewest(i, func(spans []span) []span { // what holds the box holds each value in it
		lo := spans[0].lo
		return []span{{lo, lo + 1, 0}}
	})
}

// Beside returns the boxes, ascending and each once, that may meet the i'th.
func (o *Index) Beside(i int) []int32 {
	return o.fewest(i, func(spans []span) []span { return spans })
}

// fewest asks the line that has the fewest boxes for what is made of the i'th
// box's spans. What it returns must not be changed.
func (o *Index) fewest(i int, asked func([]span) []span) []int32 {
	var best *line
	var by []span
	least := len(o.boxes) / 4 // else looking at all, in order, is no slower
	for at := range o.lines {
		l := &o.lines[at]
		spans := l.boxes[l.from[i]:l.from[i+1]]
		if len(spans) == 0 {
			continue
		}
		spans = asked(spans)
		n := len(l.free)
		for _, q := range spans {
			n += l.count(q)
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
		found = best.meet(found, q, 0, len(best.spans))
	}
	slices.Sort(found)
	return slices.Compact(found)
}
