// SPDX-License-Identifier: Apache-2.0

// Package denialbody implements the responses to denied requests that policies define: the field denial. A body has
// placeholders such as {{retry_after}}. A template inserts their values, escaped by the content type of the body.
package denialbody

import (
	"encoding/json"
	"fmt"
	"mime"
	"strings"
)

// Bounds of the fields.
const (
	MaxBodyBytes        = 8 << 10
	MaxContentTypeBytes = 128
)

// Values are the values of the placeholders.
type Values struct {
	Message    string // one sentence for people
	Reason     string // of the denial, such as token_bucket_exceeded
	Rule       string // the name of the limit that denies
	Status     string // the HTTP status
	Limit      string // the most whole tokens at once
	Remaining  string // whole tokens left
	RetryAfter string // seconds; empty if no wait helps
}

// Placeholders are the names of the placeholders in the order of the documentation.
var Placeholders = []string{"retry_after", "rule", "limit", "remaining", "reason", "status", "message"}

func (v *Values) get(name string) (text string, number bool) {
	switch name {
	case "retry_after":
		return v.RetryAfter, true
	case "rule":
		return v.Rule, false
	case "limit":
		return v.Limit, true
	case "remaining":
		return v.Remaining, true
	case "status":
		return v.Status, true
	case "reason":
		return v.Reason, false
	}
	return v.Message, false
}

// A part of a body is a text, or a placeholder.
type part struct {
	text        string
	placeholder string
	quoted      bool // a placeholder in a JSON string
}

type syntax uint8

const (
	syntaxText syntax = iota
	syntaxJSON
	syntaxMarkup
)

// A Template is a compiled body. It is immutable and safe for concurrent use.
type Template struct {
	ContentType string
	Source      string   // the body with its placeholders
	Header      []string // the content type as a header value; the caller must not modify it

	syntax syntax
	parts  []part
}

// Parse compiles a body. Without a content type, a body that begins with a brace or a bracket is JSON, and another
// body is plain text.
func Parse(body, contentType string) (*Template, error) {
	if contentType == "" {
		contentType = "text/plain; charset=utf-8"
		if start := strings.TrimLeft(body, " \t\r\n"); strings.HasPrefix(start, "{") && !strings.HasPrefix(start, "{{") || strings.HasPrefix(start, "[") {
			contentType = "application/json"
		}
	}
	t := &Template{ContentType: contentType, Source: body, Header: []string{contentType}}
	var err error
	if t.syntax, err = syntaxOf(contentType); err != nil {
		return nil, err
	}
	if err := t.split(body); err != nil {
		return nil, err
	}
	if t.syntax == syntaxJSON {
		for _, retry := range []string{"", "1"} {
			sample := Values{Message: `"\` + "\x00", Reason: "s", Rule: "s", Status: "429", Limit: "1", Remaining: "0", RetryAfter: retry}
			if !json.Valid(t.Append(nil, &sample)) {
				return nil, &Error{Reason: "the body is not valid JSON", Hint: "set content_type if it is another type; outside of a JSON string, a placeholder is a whole value"}
			}
		}
	}
	return t, nil
}

// An Error reports an invalid body or content type.
type Error struct {
	Reason      string
	Hint        string // the remedy; may be empty
	ContentType bool   // the content type is invalid, not the body
}

func (e *Error) Error() string { return e.Reason }

// syntaxOf returns the syntax of a content type.
func syntaxOf(contentType string) (syntax, error) {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || len(contentType) > MaxContentTypeBytes || strings.ContainsFunc(contentType, func(r rune) bool { return r < ' ' || r > '~' }) {
		return 0, &Error{"content_type is not a media type", "as in text/html; charset=utf-8", true}
	}
	if set, ok := params["charset"]; ok && !strings.EqualFold(set, "utf-8") {
		return 0, &Error{"the charset must be utf-8", "", true}
	}
	switch {
	case media == "application/json" || strings.HasSuffix(media, "+json"):
		return syntaxJSON, nil
	case media == "text/html" || media == "application/xml" || media == "text/xml" || strings.HasSuffix(media, "+xml"):
		return syntaxMarkup, nil
	case media == "text/plain":
		return syntaxText, nil
	}
	return 0, &Error{fmt.Sprintf("mete cannot escape values for %s", media), "use JSON, XML, text/html or text/plain", true}
}

// split divides a body into its parts.
func (t *Template) split(body string) error {
	inString := false // in a JSON string
	for {
		text, rest, found := strings.Cut(body, "{{")
		if text != "" {
			t.parts = append(t.parts, part{text: text})
			inString = endsInString(text, inString)
		}
		if !found {
			return nil
		}
		name, after, closed := strings.Cut(rest, "}}")
		name = strings.TrimSpace(name)
		switch {
		case !closed:
			return &Error{Reason: "a placeholder has no closing braces", Hint: "as in {{retry_after}}"}
		case !isPlaceholder(name):
			return &Error{Reason: fmt.Sprintf("unknown placeholder %q", shorten(name)), Hint: "valid placeholders are " + strings.Join(Placeholders, ", ")}
		}
		t.parts = append(t.parts, part{placeholder: name, quoted: inString})
		body = after
	}
}

func shorten(s string) string {
	const most = 40
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

func isPlaceholder(name string) bool {
	for _, known := range Placeholders {
		if name == known {
			return true
		}
	}
	return false
}

// endsInString reports whether a JSON text ends in a string, if it begins in one or not.
func endsInString(text string, inside bool) bool {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			inside = !inside
		case text[i] == '\\' && inside:
			i++
		}
	}
	return inside
}

// Append appends the body with the values v to dst.
func (t *Template) Append(dst []byte, v *Values) []byte {
	for i := range t.parts {
		p := &t.parts[i]
		if p.placeholder == "" {
			dst = append(dst, p.text...)
			continue
		}
		text, number := v.get(p.placeholder)
		switch {
		case t.syntax == syntaxMarkup:
			dst = appendMarkup(dst, text)
		case t.syntax == syntaxText:
			dst = appendText(dst, text)
		case number && !p.quoted && text == "":
			dst = append(dst, "null"...)
		case number && !p.quoted:
			dst = append(dst, text...)
		default:
			quoted := quoteJSON(text)
			if p.quoted {
				quoted = quoted[1 : len(quoted)-1]
			}
			dst = append(dst, quoted...)
		}
	}
	return dst
}

// quoteJSON returns s as a JSON string without characters that have a meaning in HTML.
func quoteJSON(s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil { // a string always has a JSON form
		return []byte(`""`)
	}
	return quoted
}

// appendMarkup escapes s for HTML and XML, in text and in quoted attribute values. Control characters are not valid in
// XML and become spaces.
func appendMarkup(dst []byte, s string) []byte {
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch r {
		case '&':
			dst = append(dst, "&amp;"...)
		case '<':
			dst = append(dst, "&lt;"...)
		case '>':
			dst = append(dst, "&gt;"...)
		case '"':
			dst = append(dst, "&#34;"...)
		case '\'':
			dst = append(dst, "&#39;"...)
		default:
			dst = appendPrintable(dst, r)
		}
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		dst = appendPrintable(dst, r)
	}
	return dst
}

func appendPrintable(dst []byte, r rune) []byte {
	if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0xfffe || r == 0xffff {
		r = ' '
	}
	return append(dst, string(r)...)
}
