// SPDX-License-Identifier: Apache-2.0

package requestpath

import "strings"

// Of returns the path of a request target as it was sent, in origin form
// ("/path?query"), absolute form ("http://host/path") or as "*", and whether it is
// disputed. It always starts with a slash, but for "*".
func Of(target string) (path string, disputed bool) {
	if target == "*" {
		return target, false
	}
	if target != "" && target[0] != '/' {
		target = withoutOrigin(target)
	}
	if isClean(target, unusual|unusualSent) {
		return target, false
	}
	r := reading{sent: true, text: target}
	return r.read(), r.isDisputed()
}

// Decoded is [Of] for the path of a target that has been decoded already, as
// [net/url.URL.Path] has: "%" and "?" stand for themselves. Whether a dot or a
// slash was escaped cannot be seen any more.
func Decoded(decoded string) (path string, disputed bool) {
	if decoded == "*" || isClean(decoded, unusual) {
		return decoded, false
	}
	r := reading{text: decoded}
	return r.read(), r.isDisputed()
}

// Resolved returns a decoded path in which there is nothing left to be disputed
// about its segments: as [Decoded] has it, but with path parameters. It is for
// those who send the path on, to servers that read them. What starts with a slash
// and has no empty and no dot segments is returned as it is.
func Resolved(decoded string) string {
	if decoded == "*" || isClean(decoded, unusual) {
		return decoded
	}
	r := reading{text: decoded, keepParams: true}
	if resolved := r.read(); r.dots || r.empty || decoded == "" || decoded[0] != '/' {
		return resolved
	}
	return decoded
}

// A Place is the path of a request target, read once. Rules and routes match Path. A proxy
// sends Resolved.
type Place struct {
	Path     string // as [Of] or [Decoded] returns it
	Disputed bool   // as [Of] or [Decoded] reports it

	Resolved         string // as [Resolved] returns it
	ResolvedDisputed bool   // servers read Resolved differently, too
}

// Read reads the path of a URL. decoded is [net/url.URL.Path]. sent is its RawPath if that
// is an encoding of the same path, or "".
func Read(decoded, sent string) Place {
	text, look := decoded, unusual
	if sent != "" {
		text, look = sent, unusual|unusualSent
	}
	if sent == "" && decoded == "*" || isClean(text, look) {
		return Place{Path: text, Resolved: decoded}
	}
	if sent != "" && (sent[0] != '/' || strings.ContainsAny(sent, "?#")) { // no parser of URLs returns this
		p := Place{Resolved: Resolved(decoded)}
		p.Path, p.Disputed = Of(sent)
		if p.ResolvedDisputed = p.Disputed; p.Resolved != decoded {
			_, p.ResolvedDisputed = Decoded(p.Resolved)
		}
		return p
	}
	r := reading{text: text, sent: sent != "", keepParams: true}
	resolved := r.read()
	p := Place{Path: withoutParams(resolved), Disputed: r.isDisputed(), Resolved: decoded, ResolvedDisputed: r.isDisputed()}
	if r.dots || r.empty || decoded == "" || decoded[0] != '/' {
		// Only a NUL is disputed in a path whose segments are resolved.
		p.Resolved, p.ResolvedDisputed = resolved, strings.IndexByte(resolved, 0) >= 0
	}
	return p
}

// withoutParams returns a path whose segments are resolved without their parameters.
func withoutParams(path string) string {
	start := strings.IndexByte(path, ';')
	if start < 0 {
		return path
	}
	plain, skip := append(make([]byte, 0, len(path)), path[:start]...), true
	for i := start; i < len(path); i++ {
		switch path[i] {
		case '/':
			skip = false
		case ';':
			skip = true
		}
		if !skip {
			plain = append(plain, path[i])
		}
	}
	return string(plain)
}

// withoutOrigin returns what follows scheme and authority of an absolute form.
func withoutOrigin(target string) string {
	scheme := strings.Index(target, "://")
	if scheme <= 0 || strings.ContainsAny(target[:scheme], "/?#") {
		return target
	}
	rest := target[scheme+len("://"):]
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		return rest[i:]
	}
	return ""
}

// The kinds of bytes that make it worth a closer look at a path: at any, and at
// one as it was sent. Of a slash it depends on what follows.
const (
	unusual uint8 = 1 << iota
	unusualSent
	slash
)

var kinds = func() (kinds [256]uint8) {
	kinds['/'], kinds[';'], kinds['\\'], kinds[0] = slash, unusual, unusual, unusual
	kinds['%'], kinds['?'], kinds['#'] = unusualSent, unusualSent, unusualSent
	for c := 0x80; c <= 0xff; c++ {
		kinds[c] = unusualSent
	}
	return kinds
}()

// isClean reports whether p is in the normal form, at a look. It may be even if
// isClean is false.
func isClean(p string, look uint8) bool {
	if p == "" || p[0] != '/' {
		return false
	}
	for i := range len(p) {
		switch kind := kinds[p[i]]; {
		case kind == 0:
		case kind&look != 0:
			return false
		case kind == slash && isUnclean(p[i+1:]):
			return false
		}
	}
	return true
}

// isUnclean reports whether what follows a slash begins with an empty segment that
// is not the last one, or with a dot segment.
func isUnclean(rest string) bool {
	switch {
	case rest == "":
		return false
	case rest[0] != '.':
		return rest[0] == '/'
	}
	rest = rest[1:]
	if rest != "" && rest[0] == '.' {
		rest = rest[1:]
	}
	return rest == "" || rest[0] == '/'
}
