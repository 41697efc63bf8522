// SPDX-License-Identifier: Apache-2.0

// Package requestpath gives the method, the path and the host of a request one
// spelling: the one that rules are written in. What a client can spell in several ways would
// else fall under as many rules.
//
// # Methods
//
// A method is in upper case. It has a case (RFC 9110, 9.1), and servers that keep to
// that have nothing for "post"; but others serve it as they serve "POST".
//
// # Paths
//
// A path is what stands before the first "?" of a request target. Then
//
//   - escapes are decoded, once: %2F is a slash, %252e is "%2e".
//   - "\" is taken for "/".
//   - path parameters are dropped: of each segment, what follows a ";".
//   - empty segments are dropped, "." and ".." resolved.
//   - a slash at the end is kept, and case counts: to most servers /a, /a/ and /A
//     are three things.
//
// Bytes that are not UTF-8 stay as they are. No path is "/", and "*" is "*".
//
// Not all servers read paths so. Those that do not know path parameters have
// nothing under /login;x, so that a rule which takes it for /login costs nobody
// anything. But where segments are resolved it matters what is one: /a/%2e%2e/b
// is /b to nginx, and under /a/ to Go's ServeMux; /a/..;/b is /b to Tomcat, and
// under /a/ to nginx. No single path is right for both, and so such a path is
// disputed: the functions here say so, and front doors refuse it, where a rule
// looks at it. Disputed are
//
//   - dot segments beside anything else that is spelled unusually: an escaped ".",
//     "/", "\" or ";", a bare "\" or ";", or an empty segment.
//   - a NUL, which ends the path for programs in C.
//   - what no target may hold: "#", a "%" that begins no escape, bytes that are not
//     UTF-8 unless they are escaped.
//
// Clients of good manners resolve dot segments before they send anything
// (RFC 3986, 5.2.4), and never meet this.
//
// # Hosts
//
// A host is in lower case (of ASCII), without its port, without brackets, and
// without the dot at its end. IPv6 addresses are in their canonical form; all
// other names are as sent, in punycode or not. What is no host has no name:
// an empty one, one with an empty label, a user, a path or white space.
//
// All work is linear in the length of what is given, and nothing is allocated for
// what is spelled as it should be.
package requestpath
