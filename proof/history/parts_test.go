// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"slices"

	"github.com/anishathalye/porcupine"
)

// In a Redis Cluster, a call with keys in several slots is not one step. The store promises less: it charges the keys one
// after another. If a later key denies or fails, it returns the earlier costs, each once and perhaps in the background. A
// bucket may then miss too much for a time, but never too little. A refund reaches each key once.
//
// Each key is therefore checked for itself. The history of a key has these operations:
//
//   - An admitted take is a take of the key, with the cost that its snapshot shows.
//   - A denied take shows each key as a peek does. It may also have charged the key, and then it returns the cost before the
//     end of the history. The same holds for a failed take with an error of store.NotSpent.
//   - A take with an unknown outcome happened for each key or not, and may be undone.

// checkParts checks the history of each key. At least one key has denied a denied take.
func (h *history) checkParts(steps int) porcupine.CheckResult {
	worst := porcupine.Ok
	for _, o := range h.ops {
		denied := func(s snap) bool { return !s.Allowed }
		if o.Kind == take && o.Answer.Err == "" && !o.Answer.Allowed && !slices.ContainsFunc(o.Answer.Snaps, denied) {
			return porcupine.Illegal
		}
	}
	for _, key := range h.Parts {
		switch result := h.ofKey(key).check(steps); result {
		case porcupine.Illegal:
			return result
		case porcupine.Unknown:
			worst = result
		}
	}
	return worst
}

// unexplained returns the history of the first key without an explanation, or h.
func (h *history) unexplained(steps int) *history {
	for _, key := range h.Parts {
		if one := h.ofKey(key); one.check(steps) == porcupine.Illegal {
			return one
		}
	}
	return h
}

// ofKey returns the history of one key.
func (h *history) ofKey(key string) *history {
	one := &history{Title: h.Title + ", key " + key, Seed: h.Seed, Limits: h.Limits, part: true}
	for i, o := range h.ops {
		at := slices.IndexFunc(o.Charges, func(c charge) bool { return c.Key == key })
		isTake, refused := o.Kind == take || o.Kind == force || o.Kind == peek, o.Answer.Err != "" && !o.Answer.Unknown
		if at < 0 || refused && (!isTake || len(o.Charges) == 1) {
			continue
		}
		part := *o
		part.Charges, part.UpTo = o.Charges[at:at+1:at+1], false
		if part.ID != "" {
			part.ID += " of " + nameOf(o.Charges)
		}
		alone := isDenied(o, at) && !slices.ContainsFunc(o.Charges, func(c charge) bool { return c.Key != key && isDenied(o, slices.Index(o.Charges, c)) })
		if isTake && !refused && !o.Answer.Unknown {
			shown := o.Answer.Snaps[at]
			c := part.Charges[0]
			c.Cost = shown.Cost
			part.Charges = []charge{c}
			part.Answer = answer{Allowed: shown.Allowed, Snaps: []snap{shown}}
		}
		if !refused {
			one.ops = append(one.ops, &part)
		}
		if !isTake || o.Kind == peek || len(o.Charges) == 1 || o.Answer.Allowed || alone {
			continue
		}
		charged := part
		charged.Client, charged.Answer = clients+2+i, answer{Unknown: true}
		if !o.Answer.Unknown { // denied or refused
			part.Kind, part.ID = peek, ""
			charged.ID, charged.Return = charged.ID+" denied "+string(rune('a'+i)), h.Quiet
			charged.Answer = answer{Unknown: true, Undone: true}
			one.ops = append(one.ops, &charged)
		} else if part.ID == "" {
			part.ID = "unknown " + string(rune('a'+i))
			charged.ID = part.ID
		}
		back := charged
		back.Kind = undo
		one.ops = append(one.ops, &back)
	}
	return one
}

// isDenied reports whether the snapshot of a key shows a denial.
func isDenied(o *op, i int) bool { return i < len(o.Answer.Snaps) && !o.Answer.Snaps[i].Allowed }

func nameOf(charges []charge) (name string) {
	for _, c := range charges {
		name += " " + c.Key
	}
	return name
}
