// SPDX-License-Identifier: Apache-2.0

package requesttext_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/requesttext"
)

// attributes writes the attributes of a request on one line, without what curl sends by itself.
func attributes(r *requesttext.Request) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(r.Attributes)) {
		if !slices.Contains(r.Assumed, name) {
			parts = append(parts, name+"="+r.Attributes[name])
		}
	}
	if r.Cost > 0 {
		parts = append(parts, "cost="+r.Cost.String())
	}
	return strings.Join(parts, " | ")
}

func TestRead(t *testing.T) {
	token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"u1","plan":"pro","n":3,"list":[1]}`)) + ".c2ln"
	for _, tt := range []struct{ name, text, want string }{
		{"a token", "GET / HTTP/1.1\nHost: h\nAuthorization: Bearer " + token,
			"header:authorization=Bearer " + token + " | header:host=h | host=h | jwt:list=1 | jwt:n=3 | jwt:plan=pro | jwt:sub=u1 | method=GET | path=/"},
		{"the text of a request", "GET /v1/x?a=1 HTTP/1.1\r\nHost: example.com\r\nX-Api-Key:  k1 \r\nX-Api-Key: k2\r\n\r\nbody: x",
			"header:host=example.com | header:x-api-key=k1 | host=example.com | method=GET | path=/v1/x | query:a=1"},
		{"without a version", "POST /x\nHost: h\nContent-Length: 3\n\nabc", "header:content-length=3 | header:host=h | host=h | method=POST | path=/x"},
		{"with a whole URL", "GET http://h:80/x HTTP/1.1\nHost: other", "header:host=h:80 | host=h | method=GET | path=/x"},
		{"as browsers show it", ":authority: example.com\n:method: GET\n:path: /x?a=1\n:scheme: https\nx-a: 1",
			"header:host=example.com | header:x-a=1 | host=example.com | method=GET | path=/x | query:a=1"},
		{"HTTP/1.0", "GET / HTTP/1.0\n", "method=GET | path=/"},
		{"lines", "GET /v1/x?a=1\nip=192.0.2.1\n\n  header:X-Api-Key=k=1\r\njwt:plan=pro\ncost=2.5",
			"header:x-api-key=k=1 | ip:address=192.0.2.1 | jwt:plan=pro | method=GET | path=/v1/x | query:a=1 | cost=2.5"},
		{"one line", "GET /v1/x ip=192.0.2.1 tenant=a", "ip:address=192.0.2.1 | method=GET | path=/v1/x | tenant=a"},
		{"a path", "/v1/x", "path=/v1/x"},
		{"a URL", "https://user:p@h.example/x?q", "host=h.example | path=/x | query:q="},
		{"an address in another spelling", "ip=::ffff:192.0.2.1", "ip:address=192.0.2.1"},
		{"a value with a space", "header:user-agent=a b", "header:user-agent=a b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := requesttext.Read(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := attributes(&r); got != tt.want {
				t.Errorf("%s\nis   %s\nwant %s", tt.text, got, tt.want)
			}
		})
	}
}

func TestRead_Notes(t *testing.T) {
	r, err := requesttext.Read("GET http://EXAMPLE.com/a//b HTTP/1.1\nAuthorization: Bearer e30.eyJzdWIiOiJ1MSJ9.x")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{`the host "EXAMPLE.com" is matched as "example.com"`, `the path "/a//b" is matched as "/a/b"`}; !slices.Equal(r.Notes, want) {
		t.Errorf("notes %q, want %q", r.Notes, want)
	}
	if want := []string{"jwt:sub"}; !slices.Equal(r.Claims, want) {
		t.Errorf("claims %q, want %q", r.Claims, want)
	}
}

// A value that occurs twice is explained by the first one, with a note. Lists are one value.
func TestRead_OccursTwice(t *testing.T) {
	r, err := requesttext.Read("GET http://a.example/?key=1&key=2 HTTP/1.1\nX-Api-Key: a\nX-Api-Key: b\nAccept: x\nAccept: y\nCookie: s=1%3A; s=2\nAuthorization: bearer  t")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range []string{"query:key", "header:x-api-key", "cookie:s"} {
		want = append(want, name+" occurs more than once: if a rule reads it, endpoints answer 400")
	}
	if !slices.Equal(r.Notes, want) {
		t.Errorf("notes %q, want %q", r.Notes, want)
	}
	for name, want := range map[string]string{"query:key": "1", "header:x-api-key": "a", "header:accept": "x, y", "cookie:s": "1:", "header:authorization": "Bearer t"} {
		if got := r.Attributes[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestRead_Mistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "line 1, column 1: there is no request; write a curl command, an HTTP request, or attributes such as header:x-api-key=k1",
		"\n\nhello":                       `line 3, column 1: "hello" is neither 'METHOD /path', a URL, nor NAME=VALUE, such as header:x-api-key=k1`,
		"  ip=x":                          `line 1, column 3: "x" is not an address; write one such as 192.0.2.1 or 2001:db8::1, without a port`,
		"/a\n/b":                          `line 2, column 1: "/b": write only one request`,
		"a=1\na=2":                        "line 2, column 1: a is given twice",
		"cost=0":                          "line 1, column 1: cost=0: a cost must be above 0",
		"cost=x":                          `line 1, column 1: cost=x: "x" is not a decimal number`,
		"cost=1\ncost=1":                  "line 2, column 1: cost is given twice",
		"headers:x=1":                     `line 1, column 1: policy: invalid attribute: "headers:x": unknown attribute; did you mean "header:x"?`,
		"GET /x HTTP/1.1\nno header":      "line 2, column 1: invalid header; write NAME: VALUE; an empty line ends the headers",
		"GET /x HTTP/1.1\n folded: x":     "line 2, column 1: invalid header name",
		"GET /x HTTP/1.1\nA: \x01":        "line 2, column 1: the value of header A has a control character",
		"G<T /x HTTP/1.1":                 "line 1, column 1: invalid method; write one such as GET",
		":path: /x":                       "line 1, column 1: the request line is missing; begin with one such as GET /v1/x HTTP/1.1",
		"GET /a/..%2fb HTTP/1.1\nHost: h": `servers interpret the path "/a/..%2fb" differently, so endpoints answer 400; write it without dot segments`,
		"GET http://a..b/ HTTP/1.1":       `"a..b" is not a host; write a name such as example.com`,
	} {
		_, err := requesttext.Read(text)
		if err == nil || strings.TrimPrefix(err.Error(), "requesttext: ") != want {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// Texts at their bounds cost no more than reading them.
func TestRead_Long(t *testing.T) {
	for what, text := range map[string]string{
		"parameters": "GET h/?" + many("a%d=1&", 7000) + " HTTP/1.1",
		"headers":    "GET / HTTP/1.1\n" + many("a%d: 1\n", 6000),
		"cookies":    "GET / HTTP/1.1\nCookie: " + many("a%d=1;", 7000),
		"lines":      many("a%d=1\n", 6000),
	} {
		r, err := requesttext.Read(text)
		if err != nil {
			t.Errorf("%s: %.100v", what, err)
		}
		if len(r.Attributes) < 5000 {
			t.Errorf("%s: %d attributes", what, len(r.Attributes))
		}
	}
	_, err := requesttext.Read(strings.Repeat("a", requesttext.MaxBytes+1))
	if _, ok := errors.AsType[*requesttext.Error](err); !ok {
		t.Errorf("too long: %v", err)
	}
}

func many(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func TestIsCurl(t *testing.T) {
	for text, want := range map[string]bool{
		"curl h": true, "  $ curl h": true, "sudo /usr/bin/curl -s h": true, "T=1 curl\n": true, "# a\n# b\ncurl h": true, "curl.exe h": true,
		"GET /curl HTTP/1.1": false, "header:user-agent=curl": false, "/curl h": true, "wget curl": false, "curling": false, "": false,
	} {
		if got := requesttext.IsCurl(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestRequest_Operand(t *testing.T) {
	var r requesttext.Request
	for _, s := range []string{"GET /x", "ip=2001:db8::1", "cost=0.25"} {
		if err := r.ReadOperand(s); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := attributes(&r), "ip:address=2001:db8::1 | method=GET | path=/x | cost=0.25"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if r.Cost != bucket.Token/4 {
		t.Errorf("cost %v", r.Cost)
	}
}
