// SPDX-License-Identifier: Apache-2.0

package requestpath_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/internal/requestpath"
)

func TestRulePath(t *testing.T) {
	for _, tt := range []struct {
		written string
		prefix  bool
		want    string // the path, or "!" and the hint of an error
	}{
		{"/", false, "/"}, {"/a", false, "/a"}, {"/a/", false, "/a/"}, {"/A", false, "/A"}, {"/a b", false, "/a b"},
		{"/a%20b", false, "/a b"}, {"/%61", false, "/a"}, {"/a%2Fb", false, "/a/b"}, {"/%2561", false, "/%61"}, {"/a%3Fb%23", false, "/a?b#"},
		{"/café", false, "/café"}, {"/caf%C3%A9", false, "/café"}, {"/.well-known", false, "/.well-known"},

		{"", true, ""}, {"/", true, "/"}, {"/v1/ch", true, "/v1/ch"}, {"/v1/", true, "/v1/"}, {"/a/.", true, "/a/."}, {"/a/..", true, "/a/.."},
		{"/a%20", true, "/a "},

		{"", false, `!write "/"`}, {"a", false, `!write "/a"`}, {"http://a/b", false, `!write "/http://a/b"`},
		{"/a//b", false, `!write "/a/b"`}, {"/a/../b", false, `!write "/b"`}, {"/a/.", false, `!write "/a/"`}, {`/a\b`, false, `!write "/a/b"`},
		{"/a/%2e%2e/b", false, `!write "/b"`}, {"/a;x", false, `!write "/a"`}, {"/a%3bx", false, `!write "/a"`},
		{"/a//", true, `!write "/a/"`}, {"/a/../", true, `!write "/"`}, {"/ax;", true, `!write "/ax"`}, {"//", true, `!write "/"`},
		{"/a?x=1", false, `!write "/a", and match query:NAME; or %3F for the character`}, {"/a#b", false, `!write "/a"; or %23 for the character`},
		{"/users/:id", false, `!write "/users/{id}"; escape the character (%3C, %3A) if it is part of the path`},
		{"/a/:b/c", false, `!write "/a/{b}/c"; escape the character (%3C, %3A) if it is part of the path`},
		{"/a/:b/", true, `!write "/a/{b}/"; escape the character (%3C, %3A) if it is part of the path`},
		{"/o/<int:id>", false, `!write "/o/{id}"; escape the character (%3C, %3A) if it is part of the path`},
		{"/users/%7Bid%7D", false, "/users/{id}"}, {"/users/%3Aid", false, "/users/:id"}, {"/v1/projects/x:cancel", false, "/v1/projects/x:cancel"},
		{"/at/:80", false, "/at/:80"}, {"/:", false, "/:"},
		{"~^/a", false, `!write a template such as "/users/{id}", a prefix such as "/users/*", or a list of paths`}, {"^/a", true, `!write a template such as "/users/{id}", a prefix such as "/users/*", or a list of paths`},
		{"/100%", false, "!write %25 for the character"}, {"/a%2", true, "!write %25 for the character"}, {"/a%00", false, "!leave it out"},
	} {
		got, m := requestpath.RulePath(tt.written, tt.prefix)
		if m != (requestpath.Mistake{}) {
			got = "!" + m.Hint
		}
		if got != tt.want || m.Hint != "" && m.Reason == "" {
			t.Errorf("RulePath(%q, %v) = %q (%+v), want %q", tt.written, tt.prefix, got, m, tt.want)
		}
	}
}

func TestRuleHost(t *testing.T) {
	for _, tt := range []struct {
		written string
		prefix  bool
		want    string
	}{
		{"example.com", false, "example.com"}, {"Example.COM", false, "example.com"}, {"example.com.", false, "example.com"},
		{"192.0.2.1", false, "192.0.2.1"}, {"[2001:DB8:0::1]", false, "2001:db8::1"}, {"2001:db8::1", false, "2001:db8::1"}, {"::1", false, "::1"},
		{"", true, ""}, {"API.", true, "api."}, {"api", true, "api"}, {"2001:DB8:", true, "2001:db8:"}, {"192.0.", true, "192.0."},

		{"example.com:443", false, `!write "example.com"`}, {"[::1]:80", false, `!write "::1"`}, {"example.com:", true, `!write "example.com"`},
		{"http://example.com", false, `!write its name, such as "example.com"`}, {"example.com/x", false, `!write its name, such as "example.com"`},
		{"", false, `!write its name, such as "example.com"`}, {"a..b", false, `!write its name, such as "example.com"`},
		{"u@example.com", false, `!write its name, such as "example.com"`}, {"[2001:db8:", true, `!write "2001:db8:"`},
		{".api", true, `!write its beginning, such as "api."`}, {"a..", true, `!write its beginning, such as "api."`}, {"a/", true, `!write its beginning, such as "api."`},
	} {
		got, m := requestpath.RuleHost(tt.written, tt.prefix)
		if m != (requestpath.Mistake{}) {
			got = "!" + m.Hint
		}
		if got != tt.want || m.Hint != "" && m.Reason == "" {
			t.Errorf("RuleHost(%q, %v) = %q (%+v), want %q", tt.written, tt.prefix, got, m, tt.want)
		}
	}
}

func TestRuleHostSuffix(t *testing.T) {
	for _, tt := range []struct{ written, want string }{
		{".example.com", ".example.com"}, {".Example.COM.", ".example.com"}, {".com", ".com"}, {".xn--bcher-kva.example", ".xn--bcher-kva.example"},
		{"example.com", `!write "*.example.com"`}, {".*.com", `!write "*.com", which matches any number of labels`}, {".api.*", `!as in "*.example.com"`},
		{"", `!as in "*.example.com"`}, {".", `!as in "*.example.com"`}, {"..com", `!as in "*.example.com"`}, {".example.com:80", `!write "*.example.com"`},
		{".0.0.1", ".0.0.1"}, {".192.0.2.1", "!write the address alone"}, {".2001:db8::1", "!write the address alone"}, {".example.com/x", `!as in "*.example.com"`},
	} {
		got, m := requestpath.RuleHostSuffix(tt.written)
		if m != (requestpath.Mistake{}) {
			got = "!" + m.Hint
		}
		if got != tt.want || m.Hint != "" && m.Reason == "" {
			t.Errorf("RuleHostSuffix(%q) = %q (%+v), want %q", tt.written, got, m, tt.want)
		}
	}
}

func TestHost(t *testing.T) {
	const missing = "(missing)"
	for sent, want := range map[string]string{
		"example.com": "example.com", "EXAMPLE.com": "example.com", "example.com.": "example.com", "example.com:80": "example.com",
		"Example.com.:80": "example.com", "example.com:": "example.com", "example.com:http": "example.com", "localhost": "localhost",
		"192.0.2.1:80": "192.0.2.1", "0x7f.1": "0x7f.1", "[2001:DB8::1]:80": "2001:db8::1", "[::1]": "::1", "[0:0:0:0:0:0:0:1]:": "::1",
		"XN--Bcher-KVA.example": "xn--bcher-kva.example", "bücher.example": "bücher.example", "\u212aelvin.example": "\u212aelvin.example",
		"a_b.example": "a_b.example", "ex%61mple.com": "ex%61mple.com",

		"": missing, ":80": missing, ".": missing, "..": missing, "example.com..": missing, "a..b": missing, ".a": missing,
		"[": missing, "[]": missing, "[::1": missing, "[::1]x": missing, "[192.0.2.1]": missing, "[fe80::1%eth0]": missing, "[v1.x]": missing, "::1": missing,
		"user@example.com": missing, "example.com/x": missing, `example.com\x`: missing, "example.com?x": missing, "example.com#x": missing,
		" example.com": missing, "example .com": missing, "example.com\t": missing, "a\x00": missing, "a\x7f": missing,
	} {
		got, ok := requestpath.Host(sent)
		if !ok {
			got += missing
		}
		if got != want {
			t.Errorf("Host(%q) = %q, want %q", sent, got, want)
		}
	}
}

func FuzzHost(f *testing.F) {
	for _, seed := range []string{"Example.com.:80", "[::1]:80", "a..b", "\xff", "[::ffff:1.2.3.4]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sent string) {
		name, ok := requestpath.Host(sent)
		if ok == (name == "") || strings.ContainsAny(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			t.Fatalf("Host(%q) = %q, %v", sent, name, ok)
		}
		if !ok {
			return
		}
		again := name
		if strings.Contains(name, ":") {
			again = "[" + name + "]"
		}
		if got, ok := requestpath.Host(again); !ok || got != name {
			t.Errorf("Host(%q) = %q, of which Host makes %q, %v", sent, name, got, ok)
		}
		if rule, m := requestpath.RuleHost(name, false); rule != name {
			t.Errorf("Host(%q) = %q, which no rule can be written for: %+v", sent, name, m)
		}
	})
}
