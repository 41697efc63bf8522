// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"sync/atomic"

	"github.com/metehq/mete/bucket"
)

// A purse is the leased tokens of a bucket in one word: the tokens, and above them the number of recounts.
// Spending before the last recount is reported to the store and cannot be undone.
type purse struct{ word atomic.Uint64 }

const (
	tokenBits = 40
	tokenMask = 1<<tokenBits - 1
)

func (p *purse) heldTokens() bucket.Tokens { return bucket.Tokens(p.word.Load() & tokenMask) }

// spend takes a positive cost if the purse holds it. It returns the rest and the recount number.
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

// unspend puts back a cost that was spent at this recount number, unless there was a recount since.
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

// recount returns the tokens, keeps at most keep of them, and increments the recount number.
func (p *purse) recount(keep bucket.Tokens) (held bucket.Tokens) {
	for {
		word := p.word.Load()
		held = bucket.Tokens(word & tokenMask)
		next := (word>>tokenBits+1)<<tokenBits | uint64(min(held, keep))
		if p.word.CompareAndSwap(word, next) {
			return held
		}
	}
}

// add adds amount. The caller keeps the total within maxSlice.
func (p *purse) add(amount bucket.Tokens) { p.word.Add(uint64(amount)) }
