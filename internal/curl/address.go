// SPDX-License-Identifier: Apache-2.0

package curl

import (
	"fmt"
	"net/url"
	"strings"
)

// An address is a URL, as far as a request has a part of it.
type address struct {
	host   string // with its port, unless it is the usual one
	path   string // begins with a slash
	query  string
	asks   bool // there is a ?, though nothing may follow
	userIn bool // it has a user
	user   string
}

// address reads the URL.
func (c *command) address() (a address, err error) {
	w := *c.url
	rest := w.text
	if reason := badTarget(rest); reason != "" {
		return a, errorAt(c.text, w.at, reason, "encode it, as %20 for a space; --data-urlencode with --get does")
	}
	scheme, after, ok := strings.Cut(rest, "://")
	switch {
	case !ok:
		scheme = "http"
	case strings.EqualFold(scheme, "http"), strings.EqualFold(scheme, "https"):
		scheme, rest = strings.ToLower(scheme), after
	default:
		return a, errorAt(c.text, w.at, fmt.Sprintf("the URL begins with %s://", clip(scheme)), "write one that begins with http:// or https://")
	}
	rest, _, _ = strings.Cut(rest, "#")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	authority := rest[:end]
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		a.userIn, a.user, authority = true, unescaped(authority[:at]), authority[at+1:]
	}
	port := ":80"
	if scheme == "https" {
		port = ":443"
	}
	a.host = strings.TrimSuffix(authority, port)
	if name, _, _ := strings.Cut(a.host, ":"); name == "" || strings.ContainsAny(a.host, `\{}`) {
		return a, errorAt(c.text, w.at, "the URL has no host", "write one such as http://localhost:8080/")
	}
	a.path, a.query, a.asks = strings.Cut(rest[end:], "?")
	if !c.given["globoff"] && strings.ContainsAny(rest[end:], "[]{}") {
		return a, errorAt(c.text, w.at, "curl makes several requests of [] and {} in a URL", "add --globoff if they stand for themselves")
	}
	if a.path == "" {
		a.path = "/"
	}
	if !c.given["path-as-is"] {
		a.path = withoutDots(a.path)
	}
	a.path, a.query = ascii(a.path), ascii(a.query)
	return a, nil
}

// target is the path and query that are sent.
func (c *command) target(a *address) string {
	parts := make([]string, 0, 2+len(c.query))
	if a.query != "" {
		parts = append(parts, a.query)
	}
	if c.body.there && c.given["get"] {
		parts = append(parts, ascii(c.body.text.String()))
	}
	if parts = append(parts, c.query...); len(parts) == 0 && !a.asks {
		return a.path
	}
	return a.path + "?" + strings.Join(parts, "&")
}

// unescaped decodes %XX, and leaves what is none.
func unescaped(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// ascii encodes what is not ASCII.
func ascii(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c >= 0x80 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// withoutDots resolves dot segments, as RFC 3986, section 5.2.4, has it.
func withoutDots(path string) string {
	var out []string
	segments := strings.Split(path, "/")[1:]
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
		case ".":
		case "..":
			if len(out) > 0 {
				out = out[:len(out)-1]
			}
		default:
			out = append(out, s)
			continue
		}
		if last {
			out = append(out, "")
		}
	}
	return "/" + strings.Join(out, "/")
}
