// SPDX-License-Identifier: Apache-2.0

package ai

import "bytes"

// A member is a member of an object, by the positions in its JSON text.
type member struct {
	key        []byte // raw
	start      int    // of the key's quote
	value, end int    // of the value
}

// members calls yield for each member of the object that text starts with, up to the end of the object or to invalid
// JSON. It returns the position of the closing brace, or -1.
func members(text []byte, yield func(member)) int {
	i := skipSpace(text, 0)
	if i == len(text) || text[i] != '{' {
		return -1
	}
	for i = skipSpace(text, i+1); i < len(text) && text[i] != '}'; {
		if text[i] != '"' {
			return -1
		}
		m := member{start: i}
		i = skipString(text, i)
		m.key = text[m.start+1 : max(i-1, m.start+1)]
		if i = skipSpace(text, i); i == len(text) || text[i] != ':' {
			return -1
		}
		m.value = skipSpace(text, i+1)
		m.end = skipValue(text, m.value)
		if m.end == m.value {
			return -1
		}
		yield(m)
		if i = skipSpace(text, m.end); i < len(text) && text[i] == ',' {
			i = skipSpace(text, i+1)
		} else if i < len(text) && text[i] != '}' {
			return -1
		}
	}
	if i >= len(text) {
		return -1
	}
	return i
}

func skipSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n') {
		i++
	}
	return i
}

// skipString returns the end of the string that begins with the quote at i.
func skipString(text []byte, i int) int {
	for start := i + 1; ; {
		end := bytes.IndexByte(text[start:], '"')
		if end < 0 {
			return len(text)
		}
		if !endsEscaped(text[i+1 : start+end]) {
			return start + end + 1
		}
		start += end + 1
	}
}

func skipValue(text []byte, i int) int {
	depth := 0
	for i < len(text) {
		switch c := text[i]; {
		case c == '"':
			i = skipString(text, i)
		case c == '{' || c == '[':
			depth++
			i++
		case c == '}' || c == ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		case depth > 0:
			i++
			continue
		default:
			start := i
			for i < len(text) && isScalar[text[i]] {
				i++
			}
			if i == start {
				return i
			}
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// AskForUsage returns the body of an OpenAI chat or completions request with stream_options.include_usage, and whether
// it differs. It copies all other bytes as they are. It changes nothing in a request without a stream, or that asks for
// usage already. The body must be valid: see [ReadRequest].
func AskForUsage(body []byte) (changed []byte, differs bool) {
	var stream bool
	var options member
	end := members(body, func(m member) {
		switch unquote(m.key) {
		case "stream":
			stream = string(body[m.value:m.end]) == "true"
		case "stream_options":
			options = m
		}
	})
	switch {
	case end < 0 || !stream:
		return body, false
	case options.end == 0:
		return splice(body, end, end, `,"stream_options":{"include_usage":true}`), true
	case body[options.value] != '{':
		return splice(body, options.value, options.end, `{"include_usage":true}`), true
	}
	var include, first member
	text := body[options.value:options.end]
	close := members(text, func(m member) {
		if first.end == 0 {
			first = m
		}
		if unquote(m.key) == "include_usage" {
			include = m
		}
	})
	at := options.value
	switch {
	case include.end > 0 && string(text[include.value:include.end]) == "true":
		return body, false
	case include.end > 0:
		return splice(body, at+include.value, at+include.end, "true"), true
	case first.end > 0:
		return splice(body, at+first.start, at+first.start, `"include_usage":true,`), true
	}
	return splice(body, at+close, at+close, `"include_usage":true`), true
}

// splice returns a copy of text with other bytes from start to end.
func splice(text []byte, start, end int, with string) []byte {
	all := make([]byte, 0, len(text)+len(with))
	all = append(all, text[:start]...)
	all = append(all, with...)
	return append(all, text[end:]...)
}
