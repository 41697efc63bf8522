// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"errors"
	"io"
	"maps"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/requestpath"
)

// A naive pattern of a line in an access log: address, any text without `] "`, time, request, status,
// size. Two more fields are optional, but only together.
var (
	logLine = regexp.MustCompile(`(?s)^([^ ]*) (.*)$`)
	logRest = regexp.MustCompile(`(?s)^"((?:[^"\\]|\\.)*)" ?([^ ]*)(?: ([^ ]*))?(?: (.*))?$`)
	logTwo  = regexp.MustCompile(`(?s)^"((?:[^"\\]|\\.)*)" ?"((?:[^"\\]|\\.)*)"`)
	status  = regexp.MustCompile(`^(-|[0-9]{3})$`)
	token   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// readPlainly reads a line by regular expressions, and returns its attributes
// among names.
func readPlainly(line string) (at bucket.Instant, has map[string]string, ok bool) {
	before, after, ok := strings.Cut(line, `] "`)
	head := logLine.FindStringSubmatch(before)
	rest := logRest.FindStringSubmatch(`"` + after)
	const stamp = "02/Jan/2006:15:04:05 -0700"
	if !ok || head == nil || rest == nil || !status.MatchString(rest[2]) || len(before) < len(head[1])+len(" [")+len(stamp) {
		return 0, nil, false
	}
	user := before[:len(before)-len(stamp)]
	t, err := time.Parse(stamp, before[len(before)-len(stamp):])
	if err != nil || !strings.HasSuffix(user, " [") || t.UnixMicro() < 0 || t.UnixMicro() >= 1<<53 {
		return 0, nil, false
	}
	has = map[string]string{}
	if strings.HasPrefix(rest[4], `"`) {
		two := logTwo.FindStringSubmatch(rest[4])
		if two == nil {
			return 0, nil, false
		}
		for i, name := range []string{"header:referer", "header:user-agent"} {
			if two[i+1] != "-" {
				has[name] = unescapePlainly(two[i+1])
			}
		}
	}
	if _, err := netip.ParseAddr(head[1]); err == nil {
		has["ip:address"] = head[1]
	}
	readTargetPlainly(has, unescapePlainly(rest[1]))
	return bucket.At(t), has, true
}

// readTargetPlainly reads a request line.
func readTargetPlainly(has map[string]string, line string) {
	fields := strings.Split(line, " ")
	if len(fields) < 2 || !token.MatchString(fields[0]) {
		return
	}
	if last := fields[len(fields)-1]; len(fields) > 2 {
		if !strings.HasPrefix(last, "HTTP/") {
			return
		}
		fields = fields[:len(fields)-1]
	}
	target, host, rawHost := strings.Join(fields[1:], " "), "", ""
	if i := strings.Index(target, "://"); i > 0 && target[0] != '/' {
		rawHost = target[i+3:]
		target = "/"
		if j := strings.IndexAny(rawHost, "/?#"); j >= 0 {
			rawHost, target = rawHost[:j], "/"+strings.TrimPrefix(rawHost[j:], "/")
		}
		host, _ = httpfacts.Host(rawHost)
	}
	if target != "*" && !strings.HasPrefix(target, "/") {
		return
	}
	path, query, _ := strings.Cut(target, "?")
	has["method"], has["path"] = requestpath.Method(fields[0]), httpfacts.Path(path)
	for name, value := range map[string]string{"host": host, "header:host": rawHost} {
		if value != "" {
			has[name] = value
		}
	}
	for _, name := range []string{"q", "r"} {
		if value, ok := httpfacts.QueryValue(query, name); ok && query != "" {
			has["query:"+name] = value
		}
	}
}

var escapes = regexp.MustCompile(`(?s)\\x[0-9a-fA-F]{2}|\\["\\bnrtv]`)

func unescapePlainly(s string) string {
	return escapes.ReplaceAllStringFunc(s, func(e string) string {
		if e[1] == 'x' {
			const digits = "0123456789abcdef"
			e = strings.ToLower(e)
			return string([]byte{byte(strings.IndexByte(digits, e[2])<<4 | strings.IndexByte(digits, e[3]))})
		}
		return string("\"\\\b\n\r\t\v"[strings.IndexByte(`"\bnrtv`, e[1])])
	})
}

// readBoth reads a line in both ways, behind one with the same time, and fails the
// test where they differ.
func readBoth(t *testing.T, line string) {
	t.Helper()
	line, _, _ = strings.Cut(line, "\n")
	r := trace.NewReader(strings.NewReader(start+`"GET / HTTP/1.1" 200 1`+"\n"+line+"\n"), trace.FormatCombined)
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	line = strings.TrimSpace(line)
	req, err := r.Next()
	if line == "" {
		if !errors.Is(err, io.EOF) {
			t.Errorf("%q: got error %v, want io.EOF", line, err)
		}
		return
	}
	at, want, ok := readPlainly(line)
	if (err == nil) != ok {
		t.Errorf("%q: got error %v, want it read: %t", line, err, ok)
		return
	}
	if !ok {
		return
	}
	if got := attributes(t, req); !maps.Equal(got, want) || req.At != at {
		t.Errorf("%q:\n got %q at %d\nwant %q at %d", line, got, req.At, want, at)
	}
}

func TestReader_AccessLogReadPlainly(t *testing.T) {
	for _, tt := range accessLogLines {
		readBoth(t, tt.line)
	}
	for _, address := range []string{"1.2.3.4", "01.2.3.4", "1.2.3.04", "0.0.0.0", "256.1.1.1", "1.2.3", "1.2.3.4.5", "1.2.3.", ".1.2.3", "1..2.3", "1.2.3.1000", "::1", "1", "1.2.3.4%a"} {
		readBoth(t, address+` - - [21/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1`)
	}
	for _, line := range []string{
		`192.0.2.1 - x] " [21/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1`,
		`192.0.2.1 - x] [21/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1`,
		`192.0.2.1 - [21/Nov/2026:12:00:00 +0000] [21/Nov/2026:12:00:01 +0000] "GET / HTTP/1.1" 200 1`,
		`192.0.2.1[21/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1`,
		`192.0.2.1 [21/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1`,
		` [21/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1`,
		`[21/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1`,
		`192.0.2.1 - - [21/Nov/2026:12:00:00 +0000] "`,
		`192.0.2.1 - - [21/Nov/2026:12:00:00 +0000]`,
	} {
		readBoth(t, line)
	}
}

// FuzzReadPlainly: what reads fast reads the same.
func FuzzReadPlainly(f *testing.F) {
	for _, tt := range accessLogLines {
		f.Add(tt.line)
	}
	f.Add(`192.0.2.1 - x] " [21/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1`)
	f.Add(`192.0.2.1 - a b [21/Nov/2026:12:00:01 +0000] "GET http://h?q=1 HTTP/1.1" - - "\"" "\\" x`)
	f.Fuzz(readBoth)
}
