// SPDX-License-Identifier: Apache-2.0

package curl

import (
	"strings"
)

// HTTP reads the text of an HTTP request: a request line and headers; what follows an
// empty line is its body, which has no part in it. Lines that browsers show in place of
// the first one, such as ":path: /x", stand for it. The error is an [Error].
func HTTP(text string) (Message, error) {
	if err := checkText(text); err != nil {
		return Message{}, err
	}
	r := rawRequest{text: text}
	begun := false
	for line := range strings.Lines(text) {
		content := strings.TrimRight(line, "\r\n")
		var err error
		switch {
		case strings.TrimSpace(content) == "" && !begun:
		case strings.TrimSpace(content) == "":
			return r.done()
		case strings.HasPrefix(content, ":"):
			begun, err = true, r.pseudo(content)
		case !begun:
			begun, err = true, r.line(content)
		default:
			err = r.field(content)
		}
		if err != nil {
			return Message{}, err
		}
		r.at += len(line)
	}
	return r.done()
}

// A rawRequest is the text of a request while it is read.
type rawRequest struct {
	Message
	text string
	at   int // where the line begins
	host bool
}

// line reads the request line.
func (r *rawRequest) line(s string) error {
	parts := strings.Fields(s)
	if len(parts) == 3 && !isVersion(parts[2]) || len(parts) != 2 && len(parts) != 3 {
		return errorAt(r.text, r.at, "this is no request line", "write one such as GET /v1/x HTTP/1.1")
	}
	if !isToken(parts[0]) {
		return errorAt(r.text, r.at, "the method is none", "write one such as GET")
	}
	r.Method = parts[0]
	return r.target(parts[1])
}

// target reads a path, or a URL, which has the host, too.
func (r *rawRequest) target(s string) error {
	if reason := badTarget(s); reason != "" {
		return errorAt(r.text, r.at, reason, "")
	}
	if isURL(s) {
		host, path := cutURL(s)
		r.Host, r.host, s = host, true, path
	}
	r.Target, _, _ = strings.Cut(s, "#")
	return nil
}

// pseudo reads ":method: GET".
func (r *rawRequest) pseudo(s string) error {
	name, value, _ := strings.Cut(s[1:], ":")
	switch value = strings.Trim(value, blanks); name {
	case "method":
		if !isToken(value) {
			return errorAt(r.text, r.at, "the method is none", "write one such as GET")
		}
		r.Method = value
	case "path":
		return r.target(value)
	case "authority":
		r.Host, r.host = value, true
	}
	return nil
}

// field reads a header.
func (r *rawRequest) field(s string) error {
	name, value, ok := strings.Cut(s, ":")
	value = strings.Trim(value, blanks)
	switch reason := badValue(value); {
	case !ok:
		return errorAt(r.text, r.at, "this is no header", "write NAME: VALUE; an empty line ends the headers")
	case !isToken(name):
		return errorAt(r.text, r.at, "this is no name of a header", "")
	case reason != "":
		return errorAt(r.text, r.at, "of the header "+name+" "+reason, "")
	case !strings.EqualFold(name, "host"):
		r.Header = append(r.Header, Field{Name: name, Value: value})
	case !r.host: // a URL in the first line goes before it: RFC 9112, section 3.2.2
		r.Host, r.host = value, true
	}
	return nil
}

func (r *rawRequest) done() (Message, error) {
	if r.Method == "" || r.Target == "" {
		return Message{}, errorAt(r.text, 0, "the request line is missing", "begin with one such as GET /v1/x HTTP/1.1")
	}
	return r.Message, nil
}

func isVersion(s string) bool {
	return len(s) > len("HTTP/") && strings.EqualFold(s[:len("HTTP/")], "HTTP/")
}

// isHTTP reports whether text is probably meant as the text of a request: it begins
// with a whole request line, or a line that only browsers show, or has a header in its
// second line.
func isHTTP(text string) bool {
	line, rest, _ := strings.Cut(strings.TrimLeft(text, " \t\r\n"), "\n")
	for _, name := range []string{":method:", ":path:", ":authority:", ":scheme:"} {
		if strings.HasPrefix(line, name) {
			return true
		}
	}
	parts := strings.Fields(line)
	switch {
	case len(parts) == 3 && isVersion(parts[2]):
		return true
	case len(parts) != 2 || !isToken(parts[0]):
		return false
	}
	line, _, _ = strings.Cut(rest, "\n")
	name, value, ok := strings.Cut(line, ":")
	return ok && isToken(name) && (strings.HasPrefix(value, " ") || strings.TrimSpace(value) == "")
}
