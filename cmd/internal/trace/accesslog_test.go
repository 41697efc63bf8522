// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"errors"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/policy"
)

// names are the attributes the tests look at.
var names = []string{"method", "path", "host", "ip:address", "header:user-agent", "header:referer", "header:x-api-key", "header:host",
	"query:q", "query:r", "cookie:session", "jwt:plan", "ai:model", "ai:prompt_tokens", "ai:max_tokens"}

// attributes returns what r has of them.
func attributes(t *testing.T, r *trace.Request) map[string]string {
	t.Helper()
	has := map[string]string{}
	for _, name := range names {
		a, err := policy.ParseAttribute(name)
		if err != nil {
			t.Fatal(err)
		}
		if value, ok := r.Lookup(a); ok {
			has[name] = value
		}
	}
	return has
}

// noon is the time of the lines below.
const noon = bucket.Instant(1_795_262_400_000_000) // 2026-11-21T12:00:00Z

// start is the prefix of the lines below.
const start = `192.0.2.1 - - [21/Nov/2026:12:00:00 +0000] `

// accessLogLines are lines with their attributes, beside the address.
var accessLogLines = map[string]struct {
	line string
	want map[string]string
}{
	"nginx combined": {
		start + `"GET /a/b?q=1&r=two+words HTTP/1.1" 200 612 "http://ref/" "curl/8.5.0"`,
		map[string]string{"method": "GET", "path": "/a/b", "query:q": "1", "query:r": "two words",
			"header:referer": "http://ref/", "header:user-agent": "curl/8.5.0"},
	},
	"common": {
		start + `"GET / HTTP/1.0" 304 -`,
		map[string]string{"method": "GET", "path": "/"},
	},
	"more fields than combined": {
		start + `"GET / HTTP/1.1" 200 1 "-" "-" "203.0.113.9" 0.004`,
		map[string]string{"method": "GET", "path": "/"},
	},
	"another zone": {
		`192.0.2.1 - - [21/Nov/2026:05:30:00 -0630] "GET / HTTP/1.1" 200 1`,
		map[string]string{"method": "GET", "path": "/"},
	},
	"a user with spaces and brackets": {
		`192.0.2.1 - j. [x] doe [21/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "ua"`,
		map[string]string{"method": "GET", "path": "/", "header:user-agent": "ua"},
	},
	"escapes of nginx and Apache": {
		start + `"GET /\xD0\xB6\x22 HTTP/1.1" 200 1 "a\"b\\" "tab\there \q \x2"`,
		map[string]string{"method": "GET", "path": "/ж\"", "header:referer": `a"b\`, "header:user-agent": "tab\there \\q \\x2"},
	},
	"percent signs": {
		start + `"GET /a%20b%2Fc?q=%41%zz&q=x%3D HTTP/1.1" 200 1`,
		map[string]string{"method": "GET", "path": "/a b/c", "query:q": "x="},
	},
	"bad percent sign": {
		start + `"GET /100%?q HTTP/1.1" 200 1`,
		map[string]string{"method": "GET", "path": "/100%", "query:q": ""},
	},
	"a question mark in the path": {
		start + `"GET /v1/chat%3Fx=1?q=2 HTTP/1.1" 200 1`,
		map[string]string{"method": "GET", "path": "/v1/chat?x=1", "query:q": "2"},
	},
	"path parameters": {
		start + `"GET /v1;a/chat;x=1?q=2 HTTP/1.1" 200 1`,
		map[string]string{"method": "GET", "path": "/v1/chat", "query:q": "2"},
	},
	"escaped twice": {start + `"GET /v1/%252e%252e/%2561 HTTP/1.1" 200 1`, map[string]string{"method": "GET", "path": "/v1/%2e%2e/%61"}},
	"absolute target": {
		start + `"GET http://Example.COM:8080/x?q=1 HTTP/1.1" 200 1`,
		map[string]string{"method": "GET", "path": "/x", "host": "example.com", "header:host": "Example.COM:8080", "query:q": "1"},
	},
	"absolute target without path": {
		start + `"GET http://[2001:db8::1]?q=1 HTTP/1.1" 200 1`,
		map[string]string{"method": "GET", "path": "/", "host": "2001:db8::1", "header:host": "[2001:db8::1]", "query:q": "1"},
	},
	"a URL as parameter":        {start + `"GET /?q=http://x/ HTTP/1.1" 200 1`, map[string]string{"method": "GET", "path": "/", "query:q": "http://x/"}},
	"dot segments":              {start + `"GET //a/./b/../c/%2e%2e/ HTTP/1.1" 200 1`, map[string]string{"method": "GET", "path": "/a/"}},
	"asterisk":                  {start + `"OPTIONS * HTTP/1.1" 200 1`, map[string]string{"method": "OPTIONS", "path": "*"}},
	"HTTP/0.9":                  {start + `"GET /" 200 1`, map[string]string{"method": "GET", "path": "/"}},
	"no request line":           {start + `"-" 400 0 "-" "-"`, nil},
	"empty request line":        {start + `"" 400 0 "-" "-"`, nil},
	"TLS to a plain port":       {start + `"\x16\x03\x01\x02\x00\x01\x00 \xFC/ x" 400 166 "-" "-"`, nil},
	"words":                     {start + `"what is this" 400 166 "-" "-"`, nil},
	"CONNECT":                   {start + `"CONNECT example.com:443 HTTP/1.1" 400 0`, nil},
	"a method that is no token": {start + `"G(T / HTTP/1.1" 400 0`, nil},
}

func TestReader_AccessLog(t *testing.T) {
	for name, tt := range accessLogLines {
		r := trace.NewReader(strings.NewReader(tt.line+"\n"), trace.FormatAuto)
		req, err := r.Next()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := map[string]string{"ip:address": "192.0.2.1"}
		maps.Copy(want, tt.want)
		if got := attributes(t, req); !maps.Equal(got, want) || req.At != noon || req.Cost != 0 {
			t.Errorf("%s:\n got %q at %d cost %v\nwant %q at %d", name, got, req.At, req.Cost, want, noon)
		}
		if r.Format() != trace.FormatCombined {
			t.Errorf("%s: got format %v, want combined", name, r.Format())
		}
	}
}

func TestReader_AccessLogAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"2001:db8::1": true, "::ffff:192.0.2.1": true, "fe80::1%eth0": true, "client.example.com": false, "-": false, "unix:": false, "256.1.1.1": false,
	} {
		line := address + ` - - [21/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1`
		req, err := trace.NewReader(strings.NewReader(line), trace.FormatCombined).Next()
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if got, ok := attributes(t, req)["ip:address"]; ok != want || want && got != address {
			t.Errorf("%s: got the address %q, %t; want it present: %t", address, got, ok, want)
		}
	}
}

func TestReader_AccessLogMistakes(t *testing.T) {
	const good = `192.0.2.1 - - [21/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "ua"`
	for name, edit := range map[string][2]string{
		"no time":        {"[21/Nov/2026:12:00:00 +0000] ", ""},
		"bad month":      {"Nov", "Now"},
		"bad day":        {"21/", "31/"},
		"before 1970":    {"2026", "1969"},
		"after 2255":     {"2026", "2256"},
		"no request":     {`"GET / HTTP/1.1" `, ""},
		"open request":   {`1.1" 200 1 "-" "ua"`, "1.1 200 1"},
		"bad status":     {"200", "ok"},
		"long status":    {"200", "2000"},
		"open agent":     {`ua"`, "ua"},
		"no agent":       {` "ua"`, ""},
		"no address":     {"192.0.2.1 - - ", ""},
		"escaped quotes": {`ua"`, `ua\"`},
	} {
		line := strings.Replace(good, edit[0], edit[1], 1)
		r := trace.NewReader(strings.NewReader(good+"\n\n"+line+"\n"+good+"\n"), trace.FormatAuto)
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		_, err := r.Next()
		var bad *trace.LineError
		if !errors.As(err, &bad) || bad.Line != 3 {
			t.Errorf("%s: %s: got error %v, want a LineError of line 3", name, line, err)
		}
		if _, err := r.Next(); err != nil {
			t.Errorf("%s: the line after it: %v", name, err)
		}
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: at the end: got %v, want io.EOF", name, err)
		}
	}
}

// FuzzCombined: every line is parsed or rejected, and lookups in a parsed line never panic.
func FuzzCombined(f *testing.F) {
	f.Add(`192.0.2.1 - - [21/Nov/2026:12:00:00 +0000] "GET /a%20b?q=1&r=2 HTTP/1.1" 200 612 "http://ref/" "curl \" \x41 \\"`)
	f.Add(`:: - a b [21/Nov/2026:12:00:00 +0000] "GET http://h/x HTTP/1.1" - -`)
	f.Add(`x - - [21/Nov/2026:12:00:00 +0000] "\x16\x03" 400 0 "-" "-"`)
	f.Fuzz(func(t *testing.T, line string) {
		r := trace.NewReader(strings.NewReader(line), trace.FormatCombined)
		for {
			req, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			var bad *trace.LineError
			if err != nil {
				if !errors.As(err, &bad) {
					t.Fatalf("%q: got error %v, want a LineError", line, err)
				}
				continue
			}
			has := attributes(t, req)
			if path, ok := has["path"]; ok && path[0] != '/' && path != "*" {
				t.Errorf("%q: got path %q", line, path)
			}
			if (has["method"] == "") != (has["path"] == "") || req.At < 0 || req.At >= 1<<53 {
				t.Errorf("%q: got %q at %d", line, has, req.At)
			}
		}
		if r.Bytes() != int64(len(line)) {
			t.Errorf("%q: read %d bytes, want %d", line, r.Bytes(), len(line))
		}
	})
}
