// SPDX-License-Identifier: Apache-2.0

package requestpath_test

import (
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/internal/requestpath"
)

const disputed = " (disputed)"

func of(target string) string {
	p, no := requestpath.Parse(target)
	if no {
		p += disputed
	}
	return p
}

func TestOf(t *testing.T) {
	for _, tt := range []struct{ target, want string }{
		{"/", "/"}, {"", "/"}, {"*", "*"}, {"/a", "/a"}, {"/a/", "/a/"}, {"a/b", "/a/b"}, {"/A/b", "/A/b"},
		{"/.well-known/x", "/.well-known/x"}, {"/..a/...", "/..a/..."}, {"/a.", "/a."}, {"/a..", "/a.."},

		// The query is not part of it, and begins at the first bare question mark.
		{"/v1/chat?x=1", "/v1/chat"}, {"/v1/chat?", "/v1/chat"}, {"?x", "/"}, {"/a?b=/../c;d#e", "/a"},
		{"/v1/chat%3Fx=1", "/v1/chat?x=1"}, {"/v1/chat%3fx=1?y", "/v1/chat?x=1"},

		// Other forms of a target.
		{"http://example.com", "/"}, {"http://example.com/x/?y", "/x/"}, {"HTTP://[::1]:80/x", "/x"}, {"http://example.com?/x", "/"},
		{"example.com:443", "/example.com:443"}, {"/http://a/b", "/http:/a/b"}, {"a/http://b", "/a/http:/b"}, {"://a/b", "/:/a/b"},

		// Escapes, once.
		{"/%61", "/a"}, {"/%6A%6a", "/jj"}, {"/a%20b+c", "/a b+c"}, {"/a%2Fb", "/a/b"}, {"/a%2fb%2F", "/a/b/"}, {"/a%23b", "/a#b"},
		{"/%252e%252e/b", "/%2e%2e/b"}, {"/%2561", "/%61"}, {"/a%25", "/a%"}, {"/%2525", "/%25"}, {"/a%253bx", "/a%3bx"},
		{"/%zz", "/%zz" + disputed}, {"/a%", "/a%" + disputed}, {"/a%4", "/a%4" + disputed}, {"/%61%6", "/a%6" + disputed}, {"/%G1", "/%G1" + disputed},

		// Segments.
		{"//a", "/a"}, {"///", "/"}, {"/a//", "/a/"}, {"/a//b///c", "/a/b/c"}, {"/a%2F%2fb", "/a/b"}, {"/a/%2Fb", "/a/b"},
		{"/a/./b", "/a/b"}, {"/a/../b", "/b"}, {"/../../b", "/b"}, {"/a/.", "/a/"}, {"/a/b/..", "/a/"}, {"/..", "/"}, {"/.", "/"}, {"..", "/"},
		{"/a/b/../../c", "/c"}, {"/a/b/../../../c/", "/c/"}, {"/a/..?/../b", "/"}, {"/a%20b/../c", "/c"}, {"/a%25/../c", "/c"},
		{"/a/../%2561", "/%61"},

		// Parameters.
		{"/login;x=1", "/login"}, {"/login;", "/login"}, {"/a;x/b;y;z/c", "/a/b/c"}, {"/login%3bx", "/login"}, {"/login%3B", "/login"},
		{"/;x", "/"}, {"/a/;x", "/a/"}, {"/;x/a", "/a"}, {"/a;b?c;d", "/a"}, {"/a;x%2Fb", "/a/b"}, {"/a;.", "/a"}, {"/a;../b", "/a/b"},

		// Backslashes.
		{`/a\b`, "/a/b"}, {"/a%5Cb", "/a/b"}, {`\a`, "/a"}, {`/\a`, "/a"}, {`/a\`, "/a/"}, {`/a\\b`, "/a/b"},

		// Dot segments that are not ones to all, or are resolved differently.
		{"/a/%2e%2e/b", "/b" + disputed}, {"/a/.%2E/b", "/b" + disputed}, {"/a/%2e./b", "/b" + disputed}, {"/a/%2e/b", "/a/b" + disputed},
		{"/a/..%2fb", "/b" + disputed}, {"/a%2F../b", "/b" + disputed}, {"/a%2F..%2Fb", "/b" + disputed}, {"/a%2Fb/../c", "/a/c" + disputed},
		{"/a/..;/b", "/b" + disputed}, {"/a/..;x=1/b", "/b" + disputed}, {"/a/.;/b", "/a/b" + disputed}, {"/a/..%3b/b", "/b" + disputed},
		{"/a/%2e%2e;x/b", "/b" + disputed}, {"/a;x/../b", "/b" + disputed}, {"/a/..;", "/" + disputed}, {"/a/%2e%2e", "/" + disputed},
		{`/a\..\b`, "/b" + disputed}, {"/a/..%5cb", "/b" + disputed}, {`/a/..\b`, "/b" + disputed}, {"/a//../b", "/b" + disputed},
		{"/a/..//b", "/b" + disputed}, {"/a%2e/../b", "/b" + disputed},

		// Invalid in a target.
		{"/a#b", "/a" + disputed}, {"/a#/../b", "/a" + disputed}, {"/a%00", "/a\x00" + disputed}, {"/a\x00b", "/a\x00b" + disputed},
		{"/a\xa0", "/a\xa0" + disputed}, {"/a\x85?", "/a\x85" + disputed}, {"/a?\xa0", "/a"},
		{"/caf\xc3\xa9", "/café"}, {"/caf%C3%A9", "/café"}, {"/caf%E9", "/caf\xe9"}, {"/%c0%ae", "/\xc0\xae"}, {"/a%0a%7f\t", "/a\n\x7f\t"},
	} {
		if got := of(tt.target); got != tt.want {
			t.Errorf("Of(%q) = %q, want %q", tt.target, got, tt.want)
		}
	}
}

func TestDecoded(t *testing.T) {
	for _, tt := range []struct{ path, want string }{
		{"", "/"}, {"*", "*"}, {"/a", "/a"}, {"a/b", "/a/b"}, {"/a//b", "/a/b"}, {"/a/../b", "/b"}, {"/a/..", "/"}, {"/%2e%2e/a", "/%2e%2e/a"},
		{"/a?b#c", "/a?b#c"}, {"/a;x/b", "/a/b"}, {"/a/..;/b", "/b" + disputed}, {`/a\..\b`, "/b" + disputed}, {"/a\xff", "/a\xff"},
		{"/a//../b", "/b" + disputed}, {"/a\x00", "/a\x00" + disputed}, {"http://a/b", "/http:/a/b"},
	} {
		got, no := requestpath.ParseDecoded(tt.path)
		if no {
			got += disputed
		}
		if got != tt.want {
			t.Errorf("Decoded(%q) = %q, want %q", tt.path, got, tt.want)
		}
	}
}

func TestResolved(t *testing.T) {
	for _, tt := range []struct{ path, want string }{
		{"/a;x=1", "/a;x=1"}, {"/a;x/b;y", "/a;x/b;y"}, {`/a\b`, `/a\b`}, {"*", "*"}, {"/a/", "/a/"}, {"/a\x00", "/a\x00"},
		{"/a;x//b;y", "/a;x/b;y"}, {"/a;x/../b;y/.", "/b;y/"}, {"/a/..;/b;", "/b;"}, {`/a/..\b\c`, "/b/c"}, {"/;x/a", "/a"}, {"", "/"}, {"a//b", "/a/b"},
	} {
		got := requestpath.Resolve(tt.path)
		if got != tt.want {
			t.Errorf("Resolved(%q) = %q, want %q", tt.path, got, tt.want)
		}
		checkSent(t, tt.path, got)
	}
}

// checkSent checks that servers read the resolved path as the path of the rules.
func checkSent(t *testing.T, decoded, resolved string) {
	t.Helper()
	asked, _ := requestpath.ParseDecoded(decoded)
	if got, no := requestpath.ParseDecoded(resolved); got != asked || no && !strings.Contains(decoded, "\x00") {
		t.Errorf("of %q, %q is sent on, which is %q (disputed: %v), and rules see %q", decoded, resolved, got, no, asked)
	}
}

// Normal input causes no allocation.
func TestOf_AllocatesNothing(t *testing.T) {
	for _, target := range []string{"/", "/v1/items/42", "/.well-known/acme-challenge/x", "/a.b/..c/", "*"} {
		if got := testing.AllocsPerRun(100, func() { requestpath.Parse(target); requestpath.ParseDecoded(target) }); got != 0 {
			t.Errorf("Of(%q) allocates %v times, want 0", target, got)
		}
	}
	for _, host := range []string{"example.com", "example.com:8080", "192.0.2.1:80", "xn--bcher-kva.example."} {
		if got := testing.AllocsPerRun(100, func() { requestpath.Host(host) }); got != 0 {
			t.Errorf("Host(%q) allocates %v times, want 0", host, got)
		}
	}
}

// A mebibyte of anything is read in time that is linear in it.
func TestOf_Long(t *testing.T) {
	for _, unit := range []string{"a", "/", "/.", "/..", "/a/..", "/a/a/..", ";", "/;", "%2f", "%2e", "%2e%2e%2f", `\`, "%", "\x00", "\xff", "#", "a/b/../c;d/"} {
		target := "/" + strings.Repeat(unit, 1<<20/len(unit))
		start := time.Now()
		p, _ := requestpath.Parse(target)
		requestpath.Resolve(target)
		if took := time.Since(start); took > 10*time.Second || len(p) > len(target) {
			t.Errorf("%d bytes of %q: %d bytes in %v", len(target), unit, len(p), took)
		}
	}
}

func BenchmarkOf(b *testing.B) {
	for _, target := range []string{"/v1/chat/completions/5f3a9c", "/v1//chat/../items%2F42;x=1"} {
		b.Run(target, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				requestpath.Parse(target)
			}
		})
	}
}

func FuzzOf(f *testing.F) {
	for _, seed := range []string{"/a/../b;x?y", "//%2e%2e/%2f", `\..;`, "/%", "*", "http://a/b", "/\xff#"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) { checkPath(t, target) })
}

// checkPath checks what holds for every target.
func checkPath(t *testing.T, target string) {
	t.Helper()
	p, no := requestpath.Parse(target)
	if p == "*" && target == "*" {
		return
	}
	if p == "" || p[0] != '/' || strings.Contains(p, "//") || strings.ContainsAny(p, `;\`) || strings.Contains(p+"/", "/../") || strings.Contains(p+"/", "/./") {
		t.Errorf("Of(%q) = %q, which is not in the normal form", target, p)
	}
	if again, still := requestpath.ParseDecoded(p); again != p || still && !strings.Contains(p, "\x00") {
		t.Errorf("Of(%q) = %q, of which Decoded makes %q (disputed: %v)", target, p, again, still)
	}
	if rule, m := requestpath.RulePath(strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23").Replace(p), false); !strings.Contains(p, "\x00") && (rule != p || m != requestpath.Mistake{}) {
		t.Errorf("Of(%q) = %q, which no rule can be written for: %q, %v", target, p, rule, m)
	}
	checkSent(t, target, requestpath.Resolve(target))
	sent, _, _ := strings.Cut(target, "?")
	decoded, err := url.PathUnescape(sent)
	if err != nil || strings.ContainsAny(decoded, `;\`) || strings.Contains(sent, "#") || !strings.HasPrefix(sent, "/") {
		return
	}
	// The standard library cleans plain paths in the same way.
	want := path.Clean(decoded)
	if last := decoded[strings.LastIndexByte(decoded, '/')+1:]; want != "/" && (last == "" || last == "." || last == "..") {
		want += "/" // what ends in a dot segment is a directory: RFC 3986, 5.2.4
	}
	if p != want {
		t.Errorf("Of(%q) = %q (disputed: %v), want %q as path.Clean has it", target, p, no, want)
	}
}
