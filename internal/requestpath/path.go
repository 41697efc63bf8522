// SPDX-License-Identifier: Apache-2.0

package requestpath

import "strings"

// Parse returns the path of a request target as sent: in origin form ("/path?query"), in absolute form
// ("http://host/path"), or "*". It also reports whether the path is disputed. Every path except "*" starts with a
// slash.
func Parse(target string) (path string, disputed bool) {
	if target == "*" {
		return target, false
	}
	if target != "" && target[0] != '/' {
		target = cutOrigin(target)
	}
	if isClean(target, unusual|unusualSent) {
		return target, false
	}
	r := parser{sent: true, text: target}
	return r.read(), r.isDisputed()
}

// ParseDecoded is [Parse] for a path that is already decoded, as in [net/url.URL.Path]: "%" and "?" are literal. Escaped
// dots and slashes can no longer be detected.
func ParseDecoded(decoded string) (path string, disputed bool) {
	if decoded == "*" || isClean(decoded, unusual) {
		return decoded, false
	}
	r := parser{text: decoded}
	return r.read(), r.isDisputed()
}

// Resolve returns a decoded path with its empty and dot segments resolved, but with path parameters. It is for
// proxies that forward the path to servers with path parameters. A path without such segments is returned
// unchanged.
func Resolve(decoded string) string {
	if decoded == "*" || isClean(decoded, unusual) {
		return decoded
	}
	r := parser{text: decoded, keepParams: true}
	if resolved := r.read(); r.dots || r.empty || decoded == "" || decoded[0] != '/' {
		return resolved
	}
	return decoded
}

// A Place is the path of a request target. Rules and routes match Path. A proxy sends Resolved.
type Place struct {
	Path     string // result of [Parse] or [ParseDecoded]
	Disputed bool   // result of [Parse] or [ParseDecoded]

	// Unsplit is the path to servers that keep an escaped slash within its segment, with "\" instead of that slash. It
	// is empty if the path has none.
	Unsplit string

	Resolved         string // result of [Resolve]
	ResolvedDisputed bool   // servers also interpret Resolved differently
}

// Read reads the path of a URL. decoded is [net/url.URL.Path]. sent is its RawPath if that encodes the same path,
// or "".
func Read(decoded, sent string) Place {
	text, look := decoded, unusual
	if sent != "" {
		text, look = sent, unusual|unusualSent
	}
	if sent == "" && decoded == "*" || isClean(text, look) {
		return Place{Path: text, Resolved: decoded}
	}
	if sent != "" && (sent[0] != '/' || strings.ContainsAny(sent, "?#")) { // no URL parser returns this
		p := Place{Resolved: Resolve(decoded)}
		p.Path, p.Disputed = Parse(sent)
		if p.ResolvedDisputed = p.Disputed; p.Resolved != decoded {
			_, p.ResolvedDisputed = ParseDecoded(p.Resolved)
		}
		return p
	}
	r := parser{text: text, sent: sent != "", keepParams: true}
	resolved := r.read()
	p := Place{Path: removeParams(resolved), Disputed: r.isDisputed(), Resolved: decoded, ResolvedDisputed: r.isDisputed()}
	if r.slash {
		kept := parser{text: text, sent: sent != "", keepSlash: true}
		p.Unsplit = kept.read()
	}
	if r.dots || r.empty || decoded == "" || decoded[0] != '/' {
		// In a resolved path only a NUL is disputed.
		p.Resolved, p.ResolvedDisputed = resolved, strings.IndexByte(resolved, 0) >= 0
	}
	return p
}

// removeParams removes the parameters from a resolved path.
func removeParams(path string) string {
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

func cutOrigin(target string) string {
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

// The kinds of bytes that may require a full parse: in every path, in a path as sent, and a slash.
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

// isClean reports whether p is surely in normal form. look selects the kinds of bytes to check.
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

// isUnclean reports whether the text after a slash starts with a dot segment or an inner empty segment.
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
