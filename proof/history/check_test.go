// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// A search looks for an order of the operations that the model explains. Porcupine tries all orders. Most of them are
// equivalent, and a wrong order is often noticed much later. Step therefore accepts only orders of this form:
//
//   - A peek that matches the state comes at once.
//   - A silent operation, whose answer shows no amount, fits everywhere. It is as late as possible: directly before an
//     operation that it touches, or that was called after its return.
//
// Each order has an equivalent one of this form. A quick search also bounds the number of late operations at a time, and may
// sort them. It treats each operation that does not change the state as a peek. If it finds an order, that is an
// explanation. Otherwise, only the complete search decides.
type search struct {
	model
	events []*event // by their calls
	most   int      // late operations at a time
	sorted bool
	quick  bool
	steps  int // that are left. The machine may be slow, so the search has no deadline
}

// A node is a state of the search.
type node struct {
	state
	done  bits
	late  []*event
	first int64 // the first return that is left: an operation that was called later must wait
}

// An event is an operation of the search.
type event struct {
	*op
	number  int
	touches bits // keys, IDs and holds. Two of them may share a bit
	silent  bool
	crashed bool // returned before the end of a crash, which has ended its connection
	end     int64
}

type bits [4]uint64

func (b *bits) set(n uint64)      { b[n>>6&3] |= 1 << (n & 63) }
func (b *bits) has(n uint64) bool { return b[n>>6&3]&(1<<(n&63)) != 0 }
func (b *bits) meet(o *bits) bool { return b[0]&o[0]|b[1]&o[1]|b[2]&o[2]|b[3]&o[3] != 0 }

func (s *search) porcupineModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return node{first: s.firstReturn(&bits{})} },
		Step: func(n, e, _ any) (bool, any) { return s.next(n.(node), e.(*event)) },
		Equal: func(a, b any) bool {
			return slices.Equal(a.(node).late, b.(node).late) && a.(node).equal(b.(node).state)
		},
		Hash: func(a any) uint64 {
			n := a.(node)
			for _, l := range n.late {
				n.hash = n.hash*31 + uint64(l.number)
			}
			return n.hash
		},
		DescribeOperation: func(e, _ any) string { return e.(*event).String() },
		DescribeState:     func(n any) string { return n.(node).String() },
	}
}

func (s *search) next(n node, e *event) (bool, node) {
	if e.Call > n.first {
		return false, n
	}
	if s.steps--; s.steps < 0 {
		return false, n
	}
	after := node{state: n.state, late: n.late, done: n.done}
	after.done.set(uint64(e.number))
	after.first = s.firstReturn(&after.done)
	ok := true
	if !e.ended(n.state) {
		if after.late, ok = s.lateBefore(&n, e); ok {
			after.state, ok = s.step(n.state, e.op)
		}
	}
	if ok {
		first := s.observer(&n)
		ok = first == nil || first == e
	}
	return ok, after
}

// lateBefore returns the late operations after e. It returns false if one of them should come after e.
func (s *search) lateBefore(n *node, e *event) (late []*event, ok bool) {
	for _, l := range n.late {
		switch {
		case l.touches.meet(&e.touches) && !(s.sorted && e.silent) || e.Call > l.end:
		case !e.silent || l.number > e.number:
			return nil, false
		default:
			late = append(late, l)
		}
	}
	if e.silent {
		late = append(late, e)
	}
	return late, len(late) <= s.most
}

// ended reports whether a crash has ended the operation before it had an effect.
func (e *event) ended(s state) bool {
	wiped, _ := s.get("wiped").(bool)
	return e.crashed && wiped
}

func (s *search) firstReturn(done *bits) int64 {
	first := int64(math.MaxInt64)
	for _, e := range s.events {
		if !done.has(uint64(e.number)) {
			first = min(first, e.end)
		}
	}
	return first
}

// observer returns the first peek that may come next and matches the state: see search.
func (s *search) observer(n *node) *event {
	for _, e := range s.events {
		if e.Call > n.first {
			break
		}
		if e.ended(n.state) && !n.done.has(uint64(e.number)) {
			return e
		}
		if e.silent || n.done.has(uint64(e.number)) || e.Answer.Allowed && e.ID == "" && e.Kind == take || !s.quick && e.Kind != peek {
			continue
		}
		if after, ok := s.step(n.state, e.op); ok && after.equal(n.state) {
			return e
		}
	}
	return nil
}

// events returns the operations that the model must explain. An operation that reports no effect must have none, so the
// model does not know it. An operation with an unknown outcome has no end: behind all others, its effect is the same as none.
func (h *history) events() []*event {
	holds := map[string]bits{}
	for _, o := range h.ops {
		if o.Kind == hold {
			r := holds[o.Hold]
			for _, c := range o.Charges {
				r.set(hashOf("key " + c.Key))
			}
			holds[o.Hold] = r
		}
	}
	var all []*event
	for _, o := range h.ops {
		if !o.Answer.Unknown && o.Answer.Err != "" && o.Answer.Err != errEnded ||
			o.Answer.Unknown && (o.Kind == peek || o.Kind == renewSlot || o.Kind == renewHold) { // they change nothing while the clock stands still
			continue
		}
		e := &event{op: o, touches: holds[o.Hold], end: o.Return}
		for _, c := range o.Charges {
			e.touches.set(hashOf("key " + c.Key))
		}
		if o.Hold != "" {
			e.touches.set(hashOf("hold " + o.Hold))
		}
		if o.ID != "" {
			e.touches.set(hashOf("id " + o.ID))
		}
		e.silent = o.isSilent() && (o.Kind != settle || o.Answer.Settled)
		if o.Answer.Unknown {
			if e.silent = true; !o.Answer.Undone {
				e.end = math.MaxInt64
			}
			for _, w := range h.ops {
				if (w.Kind == wipe || w.Kind == lose) && o.Return <= w.Return {
					e.crashed = true
				}
			}
		}
		if o.Kind == tick || o.Kind == wipe || o.Kind == lose {
			e.touches = bits{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
		}
		all = append(all, e)
	}
	all = h.learnFromRetries(all)
	slices.SortFunc(all, func(a, b *event) int { return cmp.Compare(a.Call, b.Call) })
	if len(all) > 64*len(bits{}) {
		panic(fmt.Sprintf("history: %d operations are too many for the numbers of events", len(all)))
	}
	for i, e := range all {
		e.number = i
	}
	return all
}

// learnFromRetries narrows down what operations with an unknown outcome did, by the answers to their retries.
//
//   - After an admitted retry, a take or hold had the same answer, and a refund was executed, before the retry returned.
//   - After a denied retry, a take was not admitted before the retry. It may have been denied, which opens the account of a
//     new version of a limit. Only if the limits of its keys never change was it not executed before the retry.
//   - Before an admitted retry, too, the first attempt may have been denied. The search assumes that only if an answer in the
//     history denies one of the keys: otherwise, it has too many orders.
//   - A settlement had no effect if the hold was settled by its retry, or with another amount.
//
// If a crash comes between the two attempts, a retry shows nothing. A part of a take over several slots may be undone before the
// retry. After an admitted one, it has no effect any more.
func (h *history) learnFromRetries(events []*event) []*event {
	// If a slot may have been released, a retry takes it again and can have another answer.
	released := func(e *event, until int64) bool {
		return slices.ContainsFunc(events, func(r *event) bool {
			return r.Kind == release && (r.Answer.Unknown || r.Call > e.Return && r.Call < until) &&
				slices.ContainsFunc(e.Charges, func(c charge) bool { return c.Slot == r.Charges[0].Slot })
		})
	}
	return slices.DeleteFunc(slices.Clone(events), func(e *event) bool {
		if !e.Answer.Unknown || e.ID == "" && e.Hold == "" {
			return false
		}
		var retry *event
		for _, r := range events {
			if (r.Kind == wipe || r.Kind == lose) && r.Return > e.Call {
				return false
			}
			same := (r.Kind == e.Kind || e.Kind == undo && (r.Kind == take || r.Kind == force)) && r.ID == e.ID && r.Hold == e.Hold && r.Amount == e.Amount
			if same && !r.Answer.Unknown && r.Answer.Err == "" && r.Call > e.Return && (retry == nil || r.Return < retry.Return) {
				retry = r
			}
		}
		switch {
		case retry == nil || released(e, retry.Call):
		case e.Kind == settle && (retry.Answer.Settled || retry.Answer.Actual != e.Amount):
			return true
		case e.Kind == settle || e.Kind == refund || e.Kind == cancel:
			e.end = retry.Return
		case (h.part || h.changed(e.Charges) && h.denied(e.Charges)) && retry.Answer.Allowed:
			e.end = retry.Return
		case h.part:
		case retry.Answer.Allowed:
			known := *e.op
			known.Answer = retry.Answer
			e.op, e.end, e.silent = &known, retry.Return, false
		case !h.changed(e.Charges):
			known := *e.op
			known.Call = retry.Call
			e.op = &known
		}
		return false
	})
}

// changed reports whether a key of the charges has several versions of its limit in the history.
func (h *history) changed(charges []charge) bool {
	return slices.ContainsFunc(charges, func(c charge) bool {
		return slices.ContainsFunc(h.ops, func(o *op) bool {
			return slices.ContainsFunc(o.Charges, func(d charge) bool { return d.Key == c.Key && d.Version != c.Version })
		})
	})
}

// denied reports whether an answer in the history denies a key of the charges.
func (h *history) denied(charges []charge) bool {
	return slices.ContainsFunc(h.ops, func(o *op) bool {
		for i, c := range o.Charges {
			if isDenied(o, i) && slices.ContainsFunc(charges, func(d charge) bool { return d.Key == c.Key }) {
				return true
			}
		}
		return false
	})
}

// operations returns the operations for porcupine. It tries calls in the order of their times. Their order here is therefore
// one that finds an explanation fast: silent operations come last. Step respects the true times.
func operations(events []*event) []porcupine.Operation {
	var all []porcupine.Operation
	for _, e := range events {
		p := porcupine.Operation{ClientId: e.Client, Input: e, Call: int64(e.number), Return: e.end}
		if e.silent {
			p.Call += int64(len(events))
		}
		if e.end < math.MaxInt64 {
			p.Return += 2 * int64(len(events))
		}
		all = append(all, p)
	}
	return all
}

// check reports whether the model explains the history. The result is unknown if that takes more than the given steps.
func (h *history) check(steps int) porcupine.CheckResult {
	if h.Parts != nil {
		return h.checkParts(steps)
	}
	events := h.events()
	all := operations(events)
	for most := 1; most <= 5; most++ {
		for _, sorted := range []bool{true, false} {
			quick := &search{model: h.model(), events: events, most: most, sorted: sorted, quick: true, steps: steps / 4}
			if porcupine.CheckOperations(quick.porcupineModel(), all) {
				return porcupine.Ok
			}
		}
	}
	complete := h.complete(events, steps)
	switch {
	case porcupine.CheckOperations(complete.porcupineModel(), all):
		return porcupine.Ok
	case complete.steps < 0:
		return porcupine.Unknown
	}
	return porcupine.Illegal
}

func (h *history) model() model {
	m := model{limits: h.Limits, parts: h.part, given: map[string]bool{}}
	if !slices.ContainsFunc(h.ops, func(o *op) bool { return o.Kind == lose }) {
		return m
	}
	for _, o := range h.ops {
		for _, c := range o.Charges {
			m.given[c.Key] = m.given[c.Key] || o.Kind == refund || o.Kind == cancel || o.Kind == reset
		}
	}
	return m
}

func (h *history) complete(events []*event, steps int) *search {
	return &search{model: h.model(), events: events, most: len(events), steps: steps}
}

// draw writes a page that shows the longest explanation of the history.
func (h *history) draw(path string, steps int) error {
	events := h.events()
	m := h.complete(events, steps).porcupineModel()
	_, info := porcupine.CheckOperationsVerbose(m, operations(events), 0)
	if err := porcupine.VisualizePath(m, info, path); err != nil {
		return fmt.Errorf("history: draw: %w", err)
	}
	return nil
}

// explain returns the longest prefix that the model explains, the state after it, and the operations that could be next.
func (h *history) explain(steps int) string {
	events := h.events()
	_, info := porcupine.CheckOperationsVerbose(h.complete(events, steps).porcupineModel(), operations(events), 0)
	var longest []porcupine.Operation
	for _, sequences := range info.PartialLinearizationsOperations() {
		for _, sequence := range sequences {
			if len(sequence) > len(longest) {
				longest = sequence
			}
		}
	}
	var b strings.Builder
	again := h.complete(events, math.MaxInt)
	n := node{first: again.firstReturn(&bits{})}
	for i, p := range longest {
		if _, n = again.next(n, p.Input.(*event)); i >= len(longest)-8 {
			fmt.Fprintf(&b, "  %v\n", p.Input)
		}
	}
	fmt.Fprintf(&b, "%d of %d operations are explained, and the state is\n  %v\nnext could be\n", len(longest), len(events), n)
	for _, e := range events {
		if !n.done.has(uint64(e.number)) && e.Call <= n.first {
			fmt.Fprintf(&b, "  %v\n", e)
		}
	}
	return b.String()
}
