// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"slices"

	"github.com/metehq/mete/store"
)

func hasPenalty(charges []store.Charge) bool {
	return slices.ContainsFunc(charges, func(c store.Charge) bool { return c.Penalty != nil })
}

// appendPenalties appends the penalties of a take to a program, if it has any.
func appendPenalties(program []int64, charges []store.Charge) []int64 {
	if !hasPenalty(charges) {
		return program
	}
	program = append(program, opPenalties, int64(len(charges)))
	for i := range charges {
		if p := charges[i].Penalty; p != nil {
			program = append(program, p.First().Microseconds(), p.Most().Microseconds(), int64(p.Factor()))
		} else {
			program = append(program, 0, 0, 0)
		}
	}
	return program
}

const perPenalty = 2 // numbers of an answer

// readPenalties reads the penalties of a take, and reports whether none is running.
func (r *answerReader) readPenalties(a *ask) (free bool, err error) {
	if !hasPenalty(a.charges) {
		return true, nil
	}
	size := perPenalty * len(a.charges)
	if len(r.numbers) < size {
		return false, &AnswerError{"too few penalties"}
	}
	free = true
	for i := range a.charges {
		left, level := r.numbers[perPenalty*i], r.numbers[perPenalty*i+1]
		free = free && left == 0
		a.snaps[i].Penalize(left, level)
	}
	r.numbers = r.numbers[size:]
	return free, nil
}
