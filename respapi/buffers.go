// SPDX-License-Identifier: Apache-2.0

package respapi

import (
	"sync"

	"github.com/metehq/mete"
)

const (
	firstBytes  = 4 << 10 // enough for a pipeline of 16 commands
	bufferBytes = 16 << 10
	flushBytes  = 16 << 10
)

// buffers are the memory that a client needs while it executes commands.
type buffers struct {
	in parser
	reply
	charge [1]mete.Charge // of CL.THROTTLE
	facts  facts          // of METE.TAKE
}

var bufferPool = sync.Pool{New: func() any {
	b := new(buffers)
	b.in.buf = make([]byte, firstBytes)
	b.out = make([]byte, 0, firstBytes)
	return b
}}

func newBuffers(resp3 bool) *buffers {
	b := bufferPool.Get().(*buffers)
	b.resp3 = resp3
	return b
}

// release returns b to the pool, which holds no large buffers and no bytes of clients' commands.
func (b *buffers) release() {
	if b == nil || len(b.in.buf) > bufferBytes || cap(b.out) > 2*flushBytes {
		return
	}
	words, args := b.in.words[:0], b.in.args[:0]
	if cap(words) > maxPooledWords {
		words, args = nil, nil
	}
	b.in = parser{buf: b.in.buf, words: words, args: args}
	b.out, b.charge[0] = b.out[:0], mete.Charge{}
	b.facts.clear()
	bufferPool.Put(b)
}

const maxPooledWords = 64
