// SPDX-License-Identifier: Apache-2.0

package requesttext

import (
	"net/http"
	"strings"
)

// readHTTP parses an HTTP request: a request line and headers, up to an empty line. Browsers show ":method: GET",
// ":path: /x" and ":authority: h" instead of a request line.
func readHTTP(text string) (*http.Request, error) {
	r := &http.Request{Header: http.Header{}}
	begun, at := false, 0
	for line := range strings.Lines(text) {
		content := strings.TrimRight(line, "\r\n")
		blank := strings.TrimSpace(content) == ""
		if blank && begun {
			break
		}
		if !blank {
			reason, hint := readLine(r, content, begun)
			if reason != "" {
				return nil, ErrorAt(text, at, reason, hint)
			}
			begun = true
		}
		at += len(line)
	}
	if r.Method == "" || r.RequestURI == "" {
		return nil, ErrorAt(text, 0, "the request line is missing", "begin with one such as GET /v1/x HTTP/1.1")
	}
	return r, nil
}

func readLine(r *http.Request, line string, begun bool) (reason, hint string) {
	const methodHint = "write one such as GET"
	name, value, colon := strings.Cut(strings.TrimPrefix(line, ":"), ":")
	value = strings.Trim(value, " \t")
	switch parts := strings.Fields(line); {
	case line[0] != ':' && !begun:
		if len(parts) != 2 && (len(parts) != 3 || !isVersion(parts[2])) {
			return "invalid request line", "write one such as GET /v1/x HTTP/1.1"
		}
		if !IsToken(parts[0]) {
			return "invalid method", methodHint
		}
		r.Method = parts[0]
		return readTarget(r, parts[1]), ""
	case line[0] != ':' && !colon:
		return "invalid header", "write NAME: VALUE; an empty line ends the headers"
	case line[0] != ':':
		if reason := CheckHeader(name, value); reason != "" {
			return reason, ""
		}
		if !strings.EqualFold(name, "host") {
			r.Header.Add(name, value)
		} else if r.Host == "" { // a URL in the request line precedes it: RFC 9112, section 3.2.2
			r.Host = value
		}
	case name == "method":
		if !IsToken(value) {
			return "invalid method", methodHint
		}
		r.Method = value
	case name == "path":
		return readTarget(r, value), ""
	case name == "authority":
		r.Host = value
	}
	return "", ""
}

func readTarget(r *http.Request, s string) (reason string) {
	if isURL(s) {
		r.Host, s = cutURL(s)
	}
	r.RequestURI, _, _ = strings.Cut(s, "#")
	return CheckTarget(s)
}

func isVersion(s string) bool {
	return len(s) > len("HTTP/") && strings.EqualFold(s[:len("HTTP/")], "HTTP/")
}

// isHTTP reports whether text is probably an HTTP request. Such text begins with a complete request line or a line
// that only browsers show, or its second line is a header.
func isHTTP(text string) bool {
	line, rest, _ := strings.Cut(strings.TrimLeft(text, " \t\r\n"), "\n")
	for _, name := range []string{":method:", ":path:", ":authority:", ":scheme:"} {
		if strings.HasPrefix(line, name) {
			return true
		}
	}
	parts := strings.Fields(line)
	if len(parts) == 3 && isVersion(parts[2]) {
		return true
	}
	line, _, _ = strings.Cut(rest, "\n")
	name, value, ok := strings.Cut(line, ":")
	return len(parts) == 2 && IsToken(parts[0]) && ok && IsToken(name) && (strings.HasPrefix(value, " ") || strings.TrimSpace(value) == "")
}
