// SPDX-License-Identifier: Apache-2.0

package denialbody_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/denialbody"
)

func TestTemplate(t *testing.T) {
	v := &denialbody.Values{Message: `Limit "a<b" is exceeded.`, Reason: "token_bucket_exceeded", Rule: `a<b & "c"`, Status: "429", Limit: "20", Remaining: "0", RetryAfter: "7"}
	never := *v
	never.RetryAfter = ""
	for _, tt := range []struct {
		body, contentType string
		v                 *denialbody.Values
		want, wantType    string
	}{
		{"wait {{retry_after}} s, {{ rule }}", "", v, `wait 7 s, a<b & "c"`, "text/plain; charset=utf-8"},
		{"{{retry_after}}", "", v, "7", "text/plain; charset=utf-8"},
		{`{"wait": {{retry_after}}, "rule": "{{rule}}", "left": {{remaining}}}`, "", v, `{"wait": 7, "rule": "a\u003cb \u0026 \"c\"", "left": 0}`, "application/json"},
		{`{"wait": {{retry_after}}, "rule": {{rule}}, "text": "in {{retry_after}}"}`, "", &never, `{"wait": null, "rule": "a\u003cb \u0026 \"c\"", "text": "in "}`, "application/json"},
		{`["\"{{reason}}\"", {{limit}}]`, "application/vnd.api+json", v, `["\"token_bucket_exceeded\"", 20]`, "application/vnd.api+json"},
		{`<p title="{{rule}}">{{message}}</p>`, "text/html; charset=utf-8", v, `<p title="a&lt;b &amp; &#34;c&#34;">Limit &#34;a&lt;b&#34; is exceeded.</p>`, "text/html; charset=utf-8"},
		{"", "text/plain", v, "", "text/plain"},
	} {
		template, err := denialbody.Parse(tt.body, tt.contentType)
		if err != nil {
			t.Errorf("%s: %v", tt.body, err)
			continue
		}
		if got := string(template.Append(nil, tt.v)); got != tt.want || template.ContentType != tt.wantType {
			t.Errorf("%s: got %s of %s, want %s of %s", tt.body, got, template.ContentType, tt.want, tt.wantType)
		}
	}
}

func TestParse_Errors(t *testing.T) {
	for _, tt := range []struct{ body, contentType, want string }{
		{"{{key}}", "", `unknown placeholder "key"`},
		{"{{" + strings.Repeat("é", 40) + "}}", "", `unknown placeholder "` + strings.Repeat("é", 20) + `…"`},
		{"wait {{retry_after", "", "no closing braces"},
		{`{"a": {{rule}}x}`, "", "not valid JSON"},
		{`{"a": 1{{retry_after}}}`, "", "not valid JSON"},
		{"wait", "application/json", "not valid JSON"},
		{`{"a": "\{{rule}}"}`, "", "not valid JSON"},
		{"x", "json", "cannot escape values for json"},
		{"x", "text/css", "cannot escape values for text/css"},
		{"x", "text/html; charset=latin1", "charset must be utf-8"},
		{"x", "text/html\r\nX: y", "not a media type"},
		{"x", "/", "not a media type"},
	} {
		_, err := denialbody.Parse(tt.body, tt.contentType)
		if e, ok := errors.AsType[*denialbody.Error](err); !ok || !strings.Contains(e.Error(), tt.want) {
			t.Errorf("Parse(%q, %q): %v, want %q", tt.body, tt.contentType, err, tt.want)
		}
	}
}

func TestAnswer_Formats(t *testing.T) {
	for _, format := range denialbody.Formats[1:] {
		for _, retry := range []string{"", "12"} {
			v := &denialbody.Values{Message: `the "x" limit`, Status: "503", RetryAfter: retry}
			a := &denialbody.Answer{Format: format}
			body := a.Template(v).Append(nil, v)
			var all struct{ Error struct{ Message string } }
			if err := json.Unmarshal(body, &all); err != nil || all.Error.Message != v.Message || strings.Contains(string(body), `"s"`) {
				t.Errorf("%s: %s, %v", format, body, err)
			}
		}
	}
	if (&denialbody.Answer{Format: "problem"}).Template(&denialbody.Values{}) != nil || (*denialbody.Answer)(nil).Template(&denialbody.Values{}) != nil {
		t.Error("a problem has no template")
	}
}

func TestCheckStatus(t *testing.T) {
	for status, want := range map[int]bool{200: false, 302: false, 399: false, 400: true, 401: false, 403: true, 407: false, 429: true, 451: true, 503: true, 599: true, 600: false} {
		if err := denialbody.CheckStatus(status); (err == nil) != want {
			t.Errorf("status %d: %v", status, err)
		}
	}
}

// FuzzAppend proves that values cannot leave their place in a body, whatever they contain.
func FuzzAppend(f *testing.F) {
	for _, seed := range []string{"", `"`, `\`, "</script><script>alert(1)</script>", "\x00\x1f\u2028\xff", `", "admin": true, "x": "`, "a&b'c"} {
		f.Add(seed)
	}
	parse := func(body, contentType string) *denialbody.Template {
		t, err := denialbody.Parse(body, contentType)
		if err != nil {
			f.Fatal(err)
		}
		return t
	}
	object := parse(`{"a": "x{{rule}}y", "b": {{message}}, "c": "\\{{reason}}"}`, "")
	page := parse(`<p title="{{rule}}" class='{{reason}}'>{{message}}</p>`, "application/xml")
	text := parse("{{rule}}", "")
	f.Fuzz(func(t *testing.T, s string) {
		v := &denialbody.Values{Rule: s, Message: s, Reason: s}
		body := object.Append(nil, v)
		var fields map[string]string
		valid := strings.ToValidUTF8(s, "\uFFFD")
		if err := json.Unmarshal(body, &fields); err != nil || len(fields) != 3 || strings.ContainsAny(string(body), "<>&") {
			t.Fatalf("%q: %s, %v", s, body, err)
		}
		if s == valid && (fields["a"] != "x"+s+"y" || fields["b"] != s || fields["c"] != `\`+s) {
			t.Fatalf("%q: %s", s, body)
		}
		markup := page.Append(nil, v)
		elements := 0
		for d := xml.NewDecoder(strings.NewReader(string(markup))); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%q: %s, %v", s, markup, err)
			}
			if start, ok := token.(xml.StartElement); ok {
				if elements++; len(start.Attr) != 2 {
					t.Fatalf("%q: %s", s, markup)
				}
			}
		}
		if elements != 1 || strings.ContainsFunc(string(text.Append(nil, v)), func(r rune) bool { return r < ' ' }) {
			t.Fatalf("%q: %s", s, markup)
		}
	})
}
