// SPDX-License-Identifier: Apache-2.0

package curl_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/metehq/mete/cmd/internal/curl"
	"github.com/metehq/mete/internal/requesttext"
	"github.com/metehq/mete/policy"
)

// FuzzRead checks that every command line is read or refused with its place. A request that is
// written out in full reads the same.
func FuzzRead(f *testing.F) {
	for _, line := range realLines {
		f.Add(strings.ReplaceAll(line, "URL", "http://127.0.0.1:8080"))
	}
	f.Add("curl ^\"https://h/x?a=1^&b=^%^20^\" ^\n  -H ^\"A: ^\\^\"1^\\^\"^\"")
	f.Add("curl h <<EOF\nx\nEOF")
	f.Fuzz(func(t *testing.T, line string) {
		sent, err := curl.Read(line)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "requesttext: line ") || !utf8.ValidString(err.Error()) && utf8.ValidString(line) {
				t.Fatalf("%q: error %q", line, err)
			}
			return
		}
		written := write(sent.Request)
		if len(written) > requesttext.MaxBytes {
			return
		}
		again, err := curl.Read(written)
		if err != nil {
			t.Fatalf("%q\nwritten as %q: %v", line, written, err)
		}
		a, b := sent.Request, again.Request
		if a.Method != b.Method || a.RequestURI != b.RequestURI || a.Host != b.Host || !maps.EqualFunc(a.Header, b.Header, slices.Equal) {
			t.Fatalf("%q\nis %+v\nwritten as %q\nis %+v", line, a, written, b)
		}
		var r requesttext.Request
		if err := r.AddHTTP(sent.Request, sent.Assumed...); err == nil {
			checkAttributes(t, &r)
		}
	})
}

// write writes a command that sends r, with no header left to curl.
func write(r *http.Request) string {
	var b strings.Builder
	b.WriteString("curl -g -X " + quoted(r.Method) + " --url " + quoted("http://h"+r.RequestURI) + " -A '' -H " + quoted("Host: "+r.Host))
	for name, values := range r.Header {
		for _, value := range values {
			if value == "" {
				b.WriteString(" -H " + quoted(name+";"))
			} else {
				b.WriteString(" -H " + quoted(name+": "+value))
			}
		}
	}
	if r.Header["Accept"] == nil {
		b.WriteString(" -H Accept:")
	}
	return b.String()
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func checkAttributes(t *testing.T, r *requesttext.Request) {
	t.Helper()
	for name, value := range r.Attributes {
		if usual, err := policy.NormalizeAttribute(name); err != nil || usual != name {
			t.Fatalf("attribute %q: %v", name, err)
		}
		if !utf8.ValidString(value) && !strings.HasPrefix(name, "query:") && name != "path" {
			t.Fatalf("attribute %q is %q, which is not UTF-8", name, value)
		}
	}
}
