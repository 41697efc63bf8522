// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// penaltyKey returns the key of a penalty: the key of its bucket with a mark, in the slot of the bucket. It has the
// family of the bucket, so ClearFamilies finds it.
func (s *Store) penaltyKey(key string) string {
	if _, tagged := hashTag(key); tagged {
		return s.bucketPrefix + key + store.PenaltyMark
	}
	return s.companionKey(bucketPrefix, key, key) + store.PenaltyMark
}

func (s *Store) addPenalties(a *ask) {
	for i := range a.charges {
		c := &a.charges[i]
		if c.Penalty == nil {
			continue
		}
		for len(a.beside) < len(a.charges) {
			a.beside = append(a.beside, "")
		}
		a.beside[i] = s.penaltyKey(c.Key)
	}
}

// encodePenalties announces the penalties of a take: see take_penalty.lua.
func (p *program) encodePenalties(a *ask) {
	if len(a.beside) == 0 {
		return
	}
	p.numbers.add(opPenalties)
	p.numbers.add(int64(len(a.charges)))
	p.numbers.addBool(a.starts)
	for i := range a.charges {
		p.numbers.add(p.addOther(a.beside[i]))
		penalty := a.charges[i].Penalty
		if penalty == nil {
			penalty = noPenalty
		}
		p.numbers.add(penalty.First().Microseconds())
		p.numbers.add(penalty.Most().Microseconds())
		p.numbers.add(int64(penalty.Factor()))
	}
}

var noPenalty = new(bucket.Penalty)

// readPenalty reads the rest of a running penalty, a comma and its level.
func readPenalty(snap *bucket.Snapshot, text string) error {
	left, level, _ := strings.Cut(text, ",")
	us, err := strconv.ParseInt(left, 10, 64)
	n, err2 := strconv.ParseInt(level, 10, 64)
	if err != nil || err2 != nil {
		return newAnswerError("invalid penalty", text)
	}
	snap.Penalize(us, n)
	return nil
}
