// SPDX-License-Identifier: Apache-2.0

package policyyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml/yamltree"
)

func parseJSON[T any](name string, data []byte, load func([]byte) (*T, error)) (*T, error) {
	if e := yamltree.CheckText(data); e != nil {
		return nil, Errors{{File: name, Line: e.Line, Column: e.Column, Error: policy.Error{Reason: "not JSON: " + e.Reason, Hint: e.Hint}}}
	}
	var syntax *json.SyntaxError
	if err := json.Unmarshal(data, new(json.RawMessage)); errors.As(err, &syntax) {
		at := placeOf(data, syntax.Offset-1)
		return nil, Errors{{File: name, Line: at.Line, Column: at.Column, Error: policy.Error{
			Reason: "not JSON: " + syntax.Error(), Hint: jsonHint(data, syntax)}}}
	}
	return compile(name, data, load, nil, func(paths []string) map[string]Place { return placesInJSON(data, paths) })
}

func jsonHint(data []byte, err *json.SyntaxError) string {
	offset := err.Offset - 1
	if offset < 0 || offset >= int64(len(data)) || strings.Contains(err.Error(), "unexpected end") {
		return "a closing quote, bracket or brace is missing"
	}
	before := bytes.TrimRight(data[:offset], " \t\r\n")
	switch c := data[offset]; {
	case (c == '}' || c == ']') && bytes.HasSuffix(before, []byte(",")):
		return "remove the comma before it"
	case c == '\'':
		return `write strings in double quotes: "…"`
	case c == '/' || c == '#':
		return "JSON has no comments: remove it, or rename the file to .yaml and use #"
	case c == '"':
		return "a comma is missing before it"
	}
	return ""
}

func placeOf(data []byte, offset int64) Place {
	before := data[:min(max(offset, 0), int64(len(data)))]
	return Place{
		Line:   bytes.Count(before, []byte("\n")) + 1,
		Column: utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1,
	}
}

// A jsonScan walks valid JSON once and records the places of the wanted paths.
type jsonScan struct {
	data   []byte
	dec    *json.Decoder
	wanted map[string]bool
	places map[string]Place
}

// scan visits the next value. Its key, if any, starts at offset key-1. A scalar is at its own position, and an object
// or array at the position of its key. scan skips other values, so the recursion is as deep as the longest path.
func (s *jsonScan) scan(path string, key int64) {
	start := s.nextOffset()
	token, err := s.dec.Token()
	if err != nil {
		return
	}
	delim, nested := token.(json.Delim)
	if s.wanted[path] {
		if nested && key > 0 {
			start = key - 1
		}
		if _, seen := s.places[path]; !seen {
			s.places[path] = placeOf(s.data, start)
		}
	}
	if !nested {
		return
	}
	for i := 0; s.dec.More(); i++ {
		element, from := strconv.Itoa(i), int64(0)
		if delim == '{' {
			from = s.nextOffset() + 1
			token, err := s.dec.Token()
			if err != nil {
				return
			}
			element, _ = token.(string)
		}
		if next := joinPath(path, element); s.wanted[next] {
			s.scan(next, from)
		} else if s.dec.Decode(new(json.RawMessage)) != nil {
			return
		}
	}
	s.dec.Token() // the closing delimiter
}

func (s *jsonScan) nextOffset() int64 {
	offset := s.dec.InputOffset()
	for offset < int64(len(s.data)) && bytes.IndexByte([]byte(" \t\r\n,:"), s.data[offset]) >= 0 {
		offset++
	}
	return offset
}
