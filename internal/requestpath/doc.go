// SPDX-License-Identifier: Apache-2.0

// Package requestpath normalizes the method, path and host of a request to the form that rules use. Otherwise a
// client could choose among several spellings, and so among several rules.
//
// # Methods
//
// Methods are converted to upper case. Methods are case-sensitive (RFC 9110, section 9.1), but some servers
// handle "post" like "POST".
//
// # Paths
//
// The path is the part of the request target before the first "?". It is normalized as follows:
//
//   - Escapes are decoded once: %2F is a slash, %252e is "%2e".
//   - "\" is replaced by "/".
//   - Path parameters are removed: in each segment, everything after a ";".
//   - Empty segments are removed; "." and ".." are resolved.
//   - A final slash is kept, and case matters: for most servers /a, /a/ and /A are different.
//
// Bytes that are not UTF-8 are kept. An empty path is "/", and "*" is "*".
//
// Not all servers read paths this way. Servers without path parameters have nothing under /login;x, so a rule
// that treats it as /login does no harm. But servers disagree on dot segments. /a/%2e%2e/b is /b to nginx and
// under /a/ to Go's ServeMux. /a/..;/b is /b to Tomcat and under /a/ to nginx. No single path is right for both.
// The functions here report such a path as disputed, and adapters reject it if a rule reads the path. Disputed
// paths have:
//
//   - dot segments together with unusual spelling: an escaped ".", "/", "\" or ";", an unescaped "\" or ";", or an
//     empty segment.
//   - a NUL, which ends the path for C programs.
//   - characters that are invalid in a target: "#", a "%" without a valid escape, unescaped bytes that are not
//     UTF-8.
//
// Well-behaved clients resolve dot segments before they send a request (RFC 3986, section 5.2.4).
//
// # Hosts
//
// The host is in lower case (ASCII only), without port, brackets or final dot. IPv6 addresses are in canonical
// form. Other names are unchanged, in punycode or not. Invalid hosts have no name: an empty host, or one with an
// empty label, a user, a path or white space.
//
// All work is linear in the length of the input, and normal input causes no allocation.
package requestpath
