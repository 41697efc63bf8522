// SPDX-License-Identifier: Apache-2.0

package requestpath

import (
	"fmt"
	"net/netip"
	"strings"
)

// A Mistake is the reason why no request can have the path or host of a rule. The zero Mistake is none.
type Mistake struct {
	Reason string // the error
	Hint   string // the remedy
}

// RulePath returns the path for a rule's text, with or without escapes, in the form that [Parse] returns for
// matching requests. With prefix, written is a prefix of the matching paths, which may end anywhere except within
// an escape. It rejects paths that no request can have.
func RulePath(written string, prefix bool) (path string, m Mistake) {
	if written == "" && prefix {
		return "", Mistake{}
	}
	if strings.HasPrefix(written, "~") || strings.HasPrefix(written, "^") {
		return "", Mistake{"a path cannot be a regular expression", `write a template such as "/users/{id}", a prefix such as "/users/*", or a list of paths`}
	}
	if !strings.HasPrefix(written, "/") {
		return "", Mistake{"a path must start with a slash", fmt.Sprintf("write %q", "/"+written)}
	}
	if i := strings.IndexAny(written, "?#"); i >= 0 {
		if written[i] == '?' {
			return "", Mistake{"the query is not part of the path", fmt.Sprintf("write %q, and match query:NAME; or %%3F for the character", written[:i])}
		}
		return "", Mistake{"a path has no fragment", fmt.Sprintf("write %q; or %%23 for the character", written[:i])}
	}
	if better := rewritePlaceholders(written); better != written {
		return "", Mistake{"the placeholders of a path are written in braces", fmt.Sprintf("write %q; escape the character (%%3C, %%3A) if it is part of the path", better)}
	}
	decoded, ok := decode(written)
	if !ok {
		return "", Mistake{"a percent sign must start an escape such as %20", "write %25 for the character"}
	}
	rest := ""
	if prefix { // the last segment continues, so "/." is not a dot segment
		rest = "x"
	}
	if path, _ = ParseDecoded(decoded + rest); path == decoded+rest && strings.IndexByte(decoded, 0) < 0 {
		return decoded, Mistake{}
	}
	path, _ = ParseDecoded(decoded)
	switch {
	case strings.IndexByte(decoded, 0) >= 0:
		return "", Mistake{"a path must not contain a NUL", "leave it out"}
	case strings.IndexByte(decoded, ';') >= 0:
		return "", Mistake{"path parameters after \";\" are removed before a path is matched", fmt.Sprintf("write %q", path)}
	}
	return "", Mistake{`empty and dot segments are resolved, and "\" is "/", before a path is matched`, fmt.Sprintf("write %q", path)}
}

// rewritePlaceholders returns a path with the placeholders of other routers, such as :id and <id>, in braces.
func rewritePlaceholders(written string) string {
	parts := strings.Split(written, "/")
	for i, part := range parts {
		if name, ok := placeholder(part); ok {
			parts[i] = "{" + name + "}"
		}
	}
	return strings.Join(parts, "/")
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }

func decode(text string) (string, bool) {
	if strings.IndexByte(text, '%') < 0 {
		return text, true
	}
	decoded := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '%' {
			var ok bool
			if c, ok = unescape(text[i:]); !ok {
				return "", false
			}
			i += 2
		}
		decoded = append(decoded, c)
	}
	return string(decoded), true
}

// RuleHost returns the host for a rule's text in the form that [Host] returns for matching requests. Case,
// brackets and a final dot do not matter. With prefix, written is a prefix of the matching hosts. It rejects
// hosts that no request can have.
func RuleHost(written string, prefix bool) (host string, m Mistake) {
	switch {
	case written == "" && prefix:
		return "", Mistake{}
	case strings.Contains(written, "://"):
		return "", Mistake{"a host has no scheme", `write its name, such as "example.com"`}
	case !prefix:
		return wholeHost(written)
	}
	host = lower(written)
	address := strings.Trim(host, "0123456789abcdef:") == ""
	switch {
	case strings.HasPrefix(host, "["):
		return "", Mistake{"hosts are matched without brackets", fmt.Sprintf("write %q", strings.Trim(host, "[]"))}
	case address && strings.Contains(host, ":"):
		return host, Mistake{}
	case strings.Contains(host, ":"):
		name, _, _ := strings.Cut(host, ":")
		return "", Mistake{"the port is not part of the host", fmt.Sprintf("write %q", name)}
	case !isName(host + "x"): // the last label continues
		return "", Mistake{"no host name starts like this", `write its beginning, such as "api."`}
	}
	return host, Mistake{}
}

func wholeHost(written string) (string, Mistake) {
	if name, ok := ipv6(strings.Trim(written, "[]")); ok {
		return name, Mistake{}
	}
	name, ok := Host(written)
	switch {
	case !ok:
		return "", Mistake{"this is no host", `write its name, such as "example.com"`}
	case strings.Contains(written, ":"):
		return "", Mistake{"the port is not part of the host", fmt.Sprintf("write %q", name)}
	}
	return name, Mistake{}
}

// RuleHostSuffix returns the end of the hosts that a rule's wildcard matches, such as ".example.com" for the text
// after the * of "*.example.com". It rejects text that no host can end with.
func RuleHostSuffix(written string) (suffix string, m Mistake) {
	name, dotted := strings.CutPrefix(written, ".")
	switch {
	case strings.Contains(name, "*"):
		hint := `as in "*.example.com"`
		if last := name[strings.LastIndexByte(name, '*')+1:]; strings.HasPrefix(last, ".") && isName(last[1:]) {
			hint = fmt.Sprintf("write %q, which matches any number of labels", "*"+last)
		}
		return "", Mistake{"a host has at most one *", hint}
	case !dotted && isName(name):
		return "", Mistake{"a * in a host replaces whole labels", fmt.Sprintf("write %q", "*."+name)}
	}
	host, m := wholeHost(name)
	if m != (Mistake{}) {
		m.Hint = `as in "*.example.com"`
		if host, ok := Host(name); ok && isName(host) {
			m.Hint = fmt.Sprintf("write %q", "*."+host)
		}
		return "", m
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return "", Mistake{"an address has no subdomains", "write the address alone"}
	}
	return "." + host, Mistake{}
}
