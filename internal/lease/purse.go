// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"sync/atomic"

	"github.com/metehq/mete/bucket"
)

// A purse is what a node holds of a bucket, in one word: the tokens, and above
// them the number of times that they have been counted. What was spent before the
// last count has been told the store, and cannot be put back.
type purse struct{ word atomic.Uint64 }

const (
	tokenBits = 40
	tokenMask = 1<<tokenBits - 1
)

// held returns what is there.
func (p *purse) held() bucket.Tokens { return bucket.Tokens(p.word.Load() & tokenMask) }

// spend takes cost, which is above 0, if it is there. It returns what is left and
// the count.
func (p *purse) spend(cost bucket.Tokens) (rest bucket.Tokens, count uint64, ok bool) {
	for {
		word := p.word.Load()
		rest = bucket.Tokens(word&tokenMask) - cost
		if rest < 0 {
			return 0, 0, false
		}
		if p.word.CompareAndSwap(word, word-uint64(cost)) {
			return rest, word >> tokenBits, true
		}
	}
}

// unspend puts back what was spent at that count, unless there was another since.
func (p *purse) unspend(cost bucket.Tokens, count uint64) bool {
	for {
		word := p.word.Load()
		if word>>tokenBits != count {
			return false
		}
		if p.word.CompareAndSwap(word, word+uint64(cost)) {
			return true
		}
	}
}

// count says what is there, leaves at most keep of it, and begins a new count.
func (p *purse) count(keep bucket.Tokens) (held bucket.Tokens) {
	for {
		word := p.word.Load()
		held = bucket.Tokens(word & tokenMask)
		next := (word>>tokenBits+1)<<tokenBits | uint64(min(held, keep))
		if p.word.CompareAndSwap(word, next) {
			return held
		}
	}
}

// add puts in amount. What is held stays within maxSlice.
func (p *purse) add(amount bucket.Tokens) { p.word.Add(uint64(amount)) }
