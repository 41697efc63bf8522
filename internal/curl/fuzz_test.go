// SPDX-License-Identifier: Apache-2.0

package curl_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/metehq/mete/internal/curl"
	"github.com/metehq/mete/policy"
)

// FuzzCommand holds that no command line is too much, and that what was read of one
// reads the same when it is written down in full.
func FuzzCommand(f *testing.F) {
	for _, line := range realLines {
		f.Add(strings.ReplaceAll(line, "URL", "http://127.0.0.1:8080"))
	}
	f.Add("curl ^\"https://h/x?a=1^&b=^%^20^\" ^\n  -H ^\"A: ^\\^\"1^\\^\"^\"")
	f.Add("curl h <<EOF\nx\nEOF")
	f.Fuzz(func(t *testing.T, line string) {
		m, err := curl.Command(line)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "curl: line ") || !utf8.ValidString(err.Error()) && utf8.ValidString(line) {
				t.Fatalf("%q: error %q", line, err)
			}
			return
		}
		again, err := curl.Command(written(&m))
		if len(written(&m)) > curl.MaxBytes {
			return
		}
		if err != nil {
			t.Fatalf("%q\nwritten as %q: %v", line, written(&m), err)
		}
		if again.Method != m.Method || again.Target != m.Target || again.Host != m.Host || !slices.EqualFunc(again.Header, m.Header, sameField) {
			t.Fatalf("%q\nis %+v\nwritten as %q\nis %+v", line, m, written(&m), again)
		}
		var r curl.Request
		if err := r.Message(&m); err == nil {
			checkAttributes(t, &r)
		}
	})
}

func sameField(a, b curl.Field) bool { return a.Name == b.Name && a.Value == b.Value }

// written is a command that sends m, with nothing left to curl.
func written(m *curl.Message) string {
	var b strings.Builder
	b.WriteString("curl -g --path-as-is -X " + quoted(m.Method) + " http://h/ --request-target " + quoted(m.Target) + " -A ''")
	if m.Host == "" {
		b.WriteString(" -H Host:")
	} else {
		b.WriteString(" -H " + quoted("Host: "+m.Host))
	}
	accepts := false
	for _, f := range m.Header {
		accepts = accepts || strings.EqualFold(f.Name, "Accept")
		if f.Value == "" {
			b.WriteString(" -H " + quoted(f.Name+";"))
		} else {
			b.WriteString(" -H " + quoted(f.Name+": "+f.Value))
		}
	}
	if !accepts {
		b.WriteString(" -H Accept:")
	}
	return b.String()
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// FuzzRead holds that no text is too much, and that what is read of one has attributes
// that a policy can name.
func FuzzRead(f *testing.F) {
	f.Add("GET /x HTTP/1.1\nHost: h\nCookie: a=1; b=\"2\"\n\nbody")
	f.Add(":method: GET\n:path: /x\n:authority: h")
	f.Add("GET /v1/x?a=1 ip=192.0.2.1\nheader:a=b\ncost=1.5")
	f.Add("curl h -H 'Authorization: Bearer e30.eyJzdWIiOiJ1MSJ9.x'")
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := curl.Read(text); err == nil {
			checkAttributes(t, &r)
		}
	})
}

func checkAttributes(t *testing.T, r *curl.Request) {
	t.Helper()
	for name, value := range r.Attributes {
		if usual, err := policy.Normalize(name); err != nil || usual != name {
			t.Fatalf("attribute %q: %v", name, err)
		}
		if !utf8.ValidString(value) && !strings.HasPrefix(name, "query:") && name != "path" {
			t.Fatalf("attribute %q is %q, which is not UTF-8", name, value)
		}
	}
}
