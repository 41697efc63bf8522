// SPDX-License-Identifier: Apache-2.0

package aitokens

import (
	"strings"

	"github.com/metehq/mete/ai"
	"github.com/tiktoken-go/tokenizer/codec"
)

// MaxExactBytes bounds the length of texts that are tokenized as a whole. For a longer text, the counter tokenizes parts
// of that length in total, spread over the text, and scales their count. This bounds the time of one estimate.
const MaxExactBytes = 16 << 10

// maxBlock is the length of the parts that a text is tokenized in. The time of the algorithm grows with the square of
// the longest word, and a client chooses the words. A word of more bytes has a token too many at each end of a part.
const maxBlock = 1 << 10

// A Counter counts tokens. It is immutable and safe for concurrent use.
type Counter struct {
	current *codec.Codec // o200k_base: GPT-4o and later models
	old     *codec.Codec // cl100k_base: GPT-4 and GPT-3.5
}

// New returns a counter. The first call builds the tables of the vocabularies, which takes a moment and about 30 MB.
func New() *Counter { return &Counter{current: codec.NewO200kBase(), old: codec.NewCl100kBase()} }

// Estimate is an [ai.Estimator]. It counts the tokens of the text, and [ai.MediaTokens] for each other part. For a
// request that is too long to be parsed, it is the same as [ai.SimpleWord].
func (c *Counter) Estimate(r *ai.Request) int64 {
	if r.Unparsed {
		return ai.SimpleWord(r)
	}
	text := string(r.AppendText(make([]byte, 0, r.Text.Bytes)))
	// AppendText leaves out the padding that the request counts for numbers, four characters each.
	padding := max(0, r.Text.Bytes-int64(len(text)))
	return c.Count(r.Model, text) + (padding+3)/4 + int64(r.Media)*ai.MediaTokens
}

// Count returns the number of tokens of a text. GPT-4 and GPT-3.5 have the vocabulary cl100k_base, and all other models
// count with o200k_base.
func (c *Counter) Count(model, text string) int64 {
	vocabulary := c.current
	if isOld(model) {
		vocabulary = c.old
	}
	if len(text) <= MaxExactBytes {
		tokens, _ := count(vocabulary, text)
		return tokens
	}
	const parts = MaxExactBytes / maxBlock
	tokens, bytes := int64(0), 0
	for i := range parts {
		start := startOfRune(text, i*(len(text)-maxBlock)/(parts-1))
		n, read := count(vocabulary, text[start:startOfRune(text, start+maxBlock)])
		tokens, bytes = tokens+n, bytes+read
	}
	return tokens * int64(len(text)) / int64(bytes)
}

// isOld reports whether a model has the vocabulary cl100k_base. Its name can have a provider before a slash.
func isOld(model string) bool {
	model = model[strings.LastIndexByte(model, '/')+1:]
	return model == "gpt-4" || strings.HasPrefix(model, "gpt-4-") || strings.HasPrefix(model, "gpt-3.5") || strings.HasPrefix(model, "gpt-35")
}

// count tokenizes a text in blocks and returns its length, too.
func count(vocabulary *codec.Codec, text string) (tokens int64, bytes int) {
	bytes = len(text)
	for len(text) > 0 {
		n := blockLength(text)
		block, err := vocabulary.Count(text[:n])
		if err != nil { // no input has one without a time limit for matches
			block = (n + 3) / 4
		}
		tokens += int64(block)
		text = text[n:]
	}
	return tokens, bytes
}

// blockLength ends a block before a space, which starts most tokens, or within a long word.
func blockLength(text string) int {
	if len(text) <= maxBlock {
		return len(text)
	}
	if at := strings.LastIndexByte(text[:maxBlock], ' '); at > 0 {
		return at
	}
	if n := startOfRune(text, maxBlock); n > 0 {
		return n
	}
	return maxBlock // no UTF-8
}

// startOfRune returns the start of the character at i, or the end of the text.
func startOfRune(text string, i int) int {
	if i >= len(text) {
		return len(text)
	}
	for n := 0; n < 3 && i > 0 && text[i]&0xC0 == 0x80; n++ {
		i--
	}
	return i
}
