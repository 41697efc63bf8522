// SPDX-License-Identifier: Apache-2.0

package httpfacts_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/httpfacts"
)

// FuzzDispute_Query compares the parsing of queries with other servers: an undisputed value is the same in all of
// them.
func FuzzDispute_Query(f *testing.F) {
	for _, seed := range []string{
		"api_key=a", "api_key=a&api_key=b", "api%5Fkey=a&api.key=b", "x=1;api_key=a", "API_KEY=a", "api_key[]=a", "+api_key=a", "api key=a",
		"api_key=%zz", "api_key", "api_key=a%00b", "api_key%00=a", "x=api_key=a", "&&api_key=a+b&", "api%5fkey%3Da", "%61pi_key=%61",
	} {
		f.Add(seed)
	}
	a := attribute(f, "query:api_key")
	source := newSource(f, httpfacts.Config{})
	f.Fuzz(func(t *testing.T, raw string) {
		if strings.ContainsAny(raw, "#") {
			return
		}
		facts := source.Facts(&http.Request{URL: &url.URL{Path: "/", RawQuery: raw}})
		defer facts.Release()
		value, ok := facts.Lookup(a)
		if facts.Ambiguity() != "" {
			return
		}
		strict, _ := url.ParseQuery(raw)
		var values []string
		values = append(values, strict["api_key"]...) // Go
		for _, separators := range []string{"&", "&;"} {
			for piece := range strings.FieldsFuncSeq(raw, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
				name, text, _ := strings.Cut(piece, "=")
				name, text = lenient(name), lenient(text)
				if name == "api_key" { // Node, Python
					values = append(values, text)
				}
				if strings.EqualFold(name, "api_key") { // ASP.NET
					values = append(values, text)
				}
				name = strings.TrimLeft(name, " ") // PHP
				name, _, _ = strings.Cut(name, "\x00")
				if base, _, array := strings.Cut(name, "["); array && strings.Contains(name, "]") {
					name = base
				}
				if strings.NewReplacer(".", "_", " ", "_", "[", "_").Replace(name) == "api_key" {
					values = append(values, text)
				}
			}
		}
		for _, other := range values {
			if !ok || other != value {
				t.Errorf("%q: rules read %q (%v), and another server %q", raw, value, ok, other)
			}
		}
	})
}

// lenient decodes valid escapes and keeps the rest.
func lenient(text string) string {
	return httpfacts.CookieText(strings.ReplaceAll(text, "+", " "))
}

// FuzzDispute_Cookie does so for cookies.
func FuzzDispute_Cookie(f *testing.F) {
	for _, seed := range []string{
		"sid=a", "sid=a; sid=b", "sid=a\nsid=b", "SID=a", "sid =a", "x=1, sid=a", `sid="a"`, `sid="a;b"`, `sid="\141"`, "sid=%61", "sid", "x=sid=a", ";;sid=a",
		`x="; sid=a; "`, "sid=a,sid=b", "sid= a", "\tsid\t=\ta",
	} {
		f.Add(seed)
	}
	a := attribute(f, "cookie:sid")
	source := newSource(f, httpfacts.Config{})
	f.Fuzz(func(t *testing.T, sent string) {
		facts := source.Facts(&http.Request{URL: &url.URL{Path: "/"}, Header: http.Header{"Cookie": strings.Split(sent, "\n")}})
		defer facts.Release()
		value, ok := facts.Lookup(a)
		if facts.Ambiguity() != "" {
			return
		}
		value = strings.Trim(value, " \t")
		line := strings.ReplaceAll(sent, "\n", ";")
		var values []string
		for _, separators := range []string{";", ";,"} {
			for i, piece := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
				name, text, pair := strings.Cut(piece, "=")
				name, text = strings.Trim(name, " \t"), strings.Trim(text, " \t")
				if !pair || !strings.EqualFold(name, "sid") {
					continue
				}
				if separators == ";" { // else the value may have a comma in it
					if len(text) > 1 && text[0] == '"' && text[len(text)-1] == '"' {
						text = text[1 : len(text)-1]
					}
					values = append(values, strings.Trim(httpfacts.CookieText(text), " \t"))
				} else if !ok {
					t.Errorf("%q: rules read no cookie, and another server has one in piece %d", sent, i)
				}
			}
		}
		for _, other := range slices.Compact(values) {
			if !ok || other != value {
				t.Errorf("%q: rules read %q (%v), and another server %q", sent, value, ok, other)
			}
		}
	})
}
