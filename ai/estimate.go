// SPDX-License-Identifier: Apache-2.0

package ai

// An Estimator returns the number of tokens of a request's prompt. It must be safe for concurrent use.
type Estimator func(*Request) int64

// charsPerToken is the usual length of a token of English text.
const charsPerToken = 4

// SimpleWord is an [Estimator]: a token per 4 characters of ASCII, rounded up, and [MediaTokens] for each part that is no text.
// A character of 2 bytes, such as a Greek one, has 5/8 of a token. One of 3 bytes, such as a Chinese one, has a token, and one of
// 4 bytes, such as an emoji, has 11/8.
func SimpleWord(r *Request) int64 {
	return simpleTokens(r.Text) + int64(r.Media)*MediaTokens
}

func simpleTokens(t Text) int64 {
	const parts = 8 // of a token: 2 for a character, and 3 for each of its bytes after the first
	return (t.Chars*parts/charsPerToken + max(t.Bytes-t.Chars, 0)*3 + parts - 1) / parts
}
