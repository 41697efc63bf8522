// SPDX-License-Identifier: Apache-2.0

package curl_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/curl"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/internal/requesttext"
)

// format writes a request on one line: "GET host/path | Name: value | …". Headers that curl
// adds by itself are left out. The others are in the order of their names.
func format(sent *httpapi.CurlRequest) string {
	r := sent.Request
	parts := []string{r.Method + " " + r.Host + r.RequestURI}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		for _, value := range r.Header[name] {
			if !slices.Contains(sent.Assumed, name) {
				parts = append(parts, name+": "+value)
			}
		}
	}
	return strings.Join(parts, " | ")
}

func TestRead(t *testing.T) {
	for _, tt := range []struct{ name, line, want string }{
		{"nothing but a URL", `curl https://example.com/a`, `GET example.com/a`},
		{"no path", `curl example.com`, `GET example.com/`},
		{"a query without a path", `curl 'http://example.com?a=1'`, `GET example.com/?a=1`},
		{"a port", `curl http://localhost:8080/x`, `GET localhost:8080/x`},
		{"the usual port", `curl https://example.com:443/x`, `GET example.com/x`},
		{"another scheme's usual port", `curl https://example.com:80/x`, `GET example.com:80/x`},
		{"IPv6", `curl 'http://[::1]:8080/x'`, `GET [::1]:8080/x`},
		{"a fragment", `curl 'http://h/x?a=1#top'`, `GET h/x?a=1`},
		{"dot segments", `curl http://h/a/./b/../../c/..`, `GET h/`},
		{"a user in the URL", `curl http://me:p%40ss@h/`, `GET h/ | Authorization: Basic bWU6cEBzcw==`},
		{"a user", `curl -u me:pass h`, `GET h/ | Authorization: Basic bWU6cGFzcw==`},
		{"a user without a password", `curl --user me h`, `GET h/ | Authorization: Basic bWU6`},
		{"a header before the user", `curl -u me:pass -H 'Authorization: Bearer t' h`, `GET h/ | Authorization: Bearer t`},
		{"headers", `curl h -H 'X-Api-Key: k1' --header "X-B:b" -H'X-C:  c  '`, `GET h/ | X-Api-Key: k1 | X-B: b | X-C: c`},
		{"an empty header", `curl h -H 'X-A;'`, `GET h/ | X-A: `},
		{"a removed header", `curl h -H 'X-A:' -H 'Accept:' -H 'User-Agent:'`, `GET h/`},
		{"another host", `curl http://127.0.0.1/x -H 'Host: api.example.com'`, `GET api.example.com/x`},
		{"a header twice", `curl h -H 'A: 1' -H 'A: 2'`, `GET h/ | A: 1 | A: 2`},
		{"pseudo headers of a browser", `curl https://h/x -H ':authority: h' -H 'a: 1'`, `GET h/x | A: 1`},
		{"cookies", `curl h -b 'a=1; b=2' --cookie c=3`, `GET h/ | Cookie: a=1; b=2;c=3`},
		{"an agent and a referrer", `curl h -A me/1 -e 'http://from/;auto'`, `GET h/ | Referer: http://from/ | User-Agent: me/1`},
		{"no agent", `curl h -A ''`, `GET h/`},
		{"a method", `curl -X PATCH h`, `PATCH h/`},
		{"a method at its option", `curl -XDELETE h/1`, `DELETE h/1`},
		{"flags in one word", `curl -sSLXPUT h`, `PUT h/`},
		{"a value in one word with flags", `curl -sHX-A:1 h`, `GET h/ | X-A: 1`},
		{"HEAD", `curl -I h`, `HEAD h/`},
		{"data", `curl h -d a=1 -d b=2`, `POST h/`},
		{"data of another method", `curl -X PUT h --data-raw @x`, `PUT h/`},
		{"data in the URL", `curl -G h/x -d a=1 --data-urlencode 'q=a b&c' -d z`, `GET h/x?a=1&q=a+b%26c&z`},
		{"data behind a query", `curl -G 'h/x?y=0' -d a=1`, `GET h/x?y=0&a=1`},
		{"data in the URL of HEAD", `curl -GI h -d a=1`, `HEAD h/?a=1`},
		{"JSON", `curl --json '{"a":1}' h`, `POST h/`},
		{"--url", `curl --url http://h/x -s`, `GET h/x`},
		{"behind --", `curl -s -- http://h/x`, `GET h/x`},
		{"not ASCII", `curl 'http://h/é?q=ü'`, `GET h/%C3%A9?q=%C3%BC`},
		{"globs that are none", `curl -g 'http://h/a[1]{b}'`, `GET h/a%5B1%5D%7Bb%7D`},
		{"lines", "curl 'http://h/x' \\\n  -H 'A: 1' \\\r\n  -H 'B: 2'\n", `GET h/x | A: 1 | B: 2`},
		{"the last line goes on nowhere", "curl h \\\n  -H 'A: 1' \\\n", `GET h/ | A: 1`},
		{"double quotes", `curl "http://h/x" -H "A: \"1\" \$2 \\ \n"`, `GET h/x | A: "1" $2 \ \n`},
		{"C quotes", `curl h -H $'A: it\'s \u0021 \x41 \101 \\ \q \U0001F600'`, `GET h/ | A: it's ! A A \ \q 😀`},
		{"quotes within a word", `curl h -H A:\ 1'2'"3"`, `GET h/ | A: 123`},
		{"a prompt", `$ curl h`, `GET h/`},
		{"a path to curl, and a variable", `TOKEN=x sudo /usr/bin/curl h`, `GET h/`},
		{"a pipe", `curl -s h/x | jq '.a'`, `GET h/x`},
		{"redirections", `curl h/x >/dev/null 2>&1 -H 'A: 1' 2> err`, `GET h/x | A: 1`},
		{"another command", `curl h/x && echo done`, `GET h/x`},
		{"comments", "# get it\ncurl h/x # done\n# more", `GET h/x`},
		{"flags that are taken back", `curl --compressed --no-compressed --no-buffer -# h`, `GET h/`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sent, err := curl.Read(tt.line)
			if err != nil {
				t.Fatal(err)
			}
			if got := format(&sent); got != tt.want {
				t.Errorf("%s\nsends %s\nwant  %s", tt.line, got, tt.want)
			}
		})
	}
}

// A rule can read a header that curl adds by itself. The request marks such headers.
func TestRead_Assumed(t *testing.T) {
	for line, want := range map[string]string{
		`curl h`:                        "Accept: */*, User-Agent: " + curl.AssumedAgent,
		`curl h -A a -H 'Accept: x'`:    "",
		`curl -d a=1 -d b h`:            "Accept: */*, Content-Length: 5, Content-Type: application/x-www-form-urlencoded, User-Agent: " + curl.AssumedAgent,
		`curl -A a --json {} h`:         "Accept: application/json, Content-Length: 2, Content-Type: application/json",
		`curl -A a -G -d a=1 h`:         "Accept: */*",
		`curl -A a --compressed h`:      "Accept: */*, Accept-Encoding: deflate, gzip, br, zstd",
		`curl -A a -d x -H 'accept:' h`: "Content-Length: 1, Content-Type: application/x-www-form-urlencoded",
	} {
		sent, err := curl.Read(line)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range slices.Sorted(slices.Values(sent.Assumed)) {
			got = append(got, name+": "+sent.Request.Header.Get(name))
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%s assumes %q, want %q", line, got, want)
		}
	}
}

func TestRead_Notes(t *testing.T) {
	for line, want := range map[string][]string{
		`curl -sSL --max-time 5 -o out h`:   {"ignored: --max-time 5", "ignored: --output out"},
		`curl -m 5 -m 5 h`:                  {"ignored: --max-time 5"},
		`curl -b jar.txt h`:                 {"ignored: --cookie with a file name"},
		`curl h -H "Authorization: $TOKEN"`: {"$TOKEN stays literal: no shell expands it"},
		`curl h/$ID`:                        {"$ID stays literal: no shell expands it"},
		`curl h/${ID}x`:                     {"$ID stays literal: no shell expands it"},
		`curl h/x?a=1&b=2`:                  {`ignored: everything after "&": put the URL in quotes if it continues there`},
		`curl h/x | jq .`:                   {`ignored: everything after "|"`},
		`curl h/x;`:                         nil,
	} {
		sent, err := curl.Read(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if !slices.Equal(sent.Notes, want) {
			t.Errorf("%s: notes %q, want %q", line, sent.Notes, want)
		}
	}
}

func TestRead_Mistakes(t *testing.T) {
	for line, want := range map[string]string{
		"":                            "line 1, column 1: no curl command given",
		"wget h":                      "line 1, column 1: this is not a curl command; begin it with curl",
		"curl":                        "line 1, column 5: the command has no URL",
		"curl -s\n":                   "line 1, column 8: the command has no URL",
		"curl h -H":                   "line 1, column 8: the value of --header is missing",
		"curl h --max-tme 5":          "line 1, column 8: curl option --max-tme is not supported; did you mean --max-time?",
		"curl h --header='A: 1'":      "line 1, column 8: curl option --header is not supported; write the option and its value as two words",
		"curl h --zzzzzzzzzzzzzz=s":   "line 1, column 8: curl option --zzzzzzzzzzzzzz is not supported; remove it",
		"curl h --proxy http://u:p@h": "line 1, column 8: curl option --proxy is not supported; remove it",
		"curl h -F a=1":               "line 1, column 8: curl option -F is not supported; remove it",
		"curl h --negotiate":          "line 1, column 8: curl option --negotiate is not supported; remove it",
		"curl \"https://h/x\" ^\r\n  -H \"A: 1\"": `line 1, column 20: this command is written for cmd.exe; copy the request "as cURL (bash)"`,
		"curl ^\"https://h/x^\"":                  `line 1, column 6: this command is written for cmd.exe; copy the request "as cURL (bash)"`,
		"curl h -sé":                              "line 1, column 8: curl option -é is not supported; remove it",
		"curl a b":                                "line 1, column 8: this is a second URL; explain one request at a time; put values with spaces in quotes",
		"curl a --next b":                         "line 1, column 8: explain one request at a time; remove everything from --next on",
		"curl h -d @file":                         "line 1, column 11: data files are not supported; write the data here, with --data-raw if it begins with @, or remove the option",
		"curl h --data-urlencode a@f": "line 1, column 25: data files are not supported; write the data here, " +
			"with --data-raw if it begins with @, or remove the option",
		"curl h -H @file":                    "line 1, column 11: header files are not supported; write them here",
		"curl h \\\n -H 'no header'":         "line 2, column 5: not a header; write NAME: VALUE, or NAME; for an empty one",
		"curl h \\\n -H 'a b: c'":            "line 2, column 5: invalid header name",
		"curl h -H $'Secret: a\\nb'":         "line 1, column 11: the value of header Secret has a control character",
		"curl h -H $'Secret: \\xff'":         "line 1, column 11: the value of header Secret is not UTF-8",
		"curl 'h":                            "line 1, column 6: reached EOF without closing quote `'`",
		`curl h -H "A`:                       "line 1, column 11: reached EOF without closing quote `\"`",
		`curl h -H $'A\'`:                    "line 1, column 11: reached EOF without closing quote `'`",
		"curl h -H 'A: 1'\n -H 'B: 2'":       `line 2, column 2: the command ends on the previous line; end that line with a \ if it continues here`,
		`curl h -H "A: $(cat key)"`:          "line 1, column 15: a shell would run a command here; replace it with its output",
		"curl `url`":                         "line 1, column 6: a shell would run a command here; replace it with its output",
		"curl ftp://h/x":                     "line 1, column 6: the URL begins with ftp://; write one that begins with http:// or https://",
		"curl http://":                       "line 1, column 6: the URL has no host; write one such as http://localhost:8080/",
		"curl 'http://h/a b'":                "line 1, column 6: the URL has a space; encode it, as %20 for a space; --data-urlencode with --get does",
		"curl -G h -d 'a b'":                 "line 1, column 9: the URL has a space; encode it, as %20 for a space; --data-urlencode with --get does",
		"curl http://h/{1..999999999}":       "line 1, column 6: a shell expands { and } to several words; put the word in quotes",
		"curl 'http://h/{a,b}'":              "line 1, column 6: curl expands [] and {} in a URL to several requests; add --globoff to send them literally",
		"curl -I -d a h":                     "line 1, column 9: --head excludes a request body; remove --head, or add --get",
		"curl -X 'A B' h":                    "line 1, column 9: not a method; write one such as GET",
		"curl h \xff":                        "line 1, column 8: the text is not UTF-8",
		"curl h \x00":                        "line 1, column 8: the text contains a NUL character",
		"curl " + strings.Repeat("x", 1<<16): "line 1, column 65537: the text is longer than 65536 bytes; leave out the body of the request",
	} {
		_, err := curl.Read(line)
		e, ok := errors.AsType[*requesttext.Error](err)
		if !ok || e.Error() != "requesttext: "+want {
			t.Errorf("%.80q:\ngot  %v\nwant requesttext: %s", line, err, want)
		}
	}
}

// Notes and errors do not repeat secrets.
func TestRead_Secrets(t *testing.T) {
	for _, line := range []string{
		"curl -u me:hunter2 -x http://u:hunter2@p --pass hunter2 -E cert:hunter2 -U u:hunter2 --tlspassword hunter2 http://u:hunter2@h/",
		"curl h --usr=hunter2",
		"curl h -u me:hunter2 -H 'Authorization: hunter2' -H 'B'",
		"curl h -H 'Bad Name: hunter2'",
		"curl ftp://me:hunter2@h",
	} {
		sent, err := curl.Read(line)
		if strings.Contains(strings.Join(sent.Notes, " "), "hunter2") || err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: notes %q, error %v", line, sent.Notes, err)
		}
	}
}

// The attributes of a command are the attributes of its request.
func TestRead_Attributes(t *testing.T) {
	sent, err := curl.Read(`curl -X post 'https://API.Example.com:8443/v1//x?tenant=a&tenant=b&q=%20' -H 'X-Api-Key: k1' -b 'theme=dark; sid="s 1"'`)
	if err != nil {
		t.Fatal(err)
	}
	var r requesttext.Request
	if err := r.AddHTTP(sent.Request, sent.Assumed...); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"cookie:sid": "s 1", "cookie:theme": "dark", "header:cookie": `theme=dark; sid="s 1"`, "header:host": "API.Example.com:8443", "header:x-api-key": "k1",
		"host": "api.example.com", "method": "POST", "path": "/v1/x", "query:q": " ", "query:tenant": "a", "header:accept": "*/*", "header:user-agent": curl.AssumedAgent,
	}
	if !maps.Equal(r.Attributes, want) {
		t.Errorf("attributes %q, want %q", r.Attributes, want)
	}
	if want := []string{"header:accept", "header:user-agent"}; !slices.Equal(r.Assumed, want) {
		t.Errorf("assumed %q, want %q", r.Assumed, want)
	}
}

// A text of the greatest size takes no longer than reading it.
func TestRead_Long(t *testing.T) {
	for what, line := range map[string]string{"parameters": "curl 'h/?" + many("a%d=1&", 7000) + "'", "options": "curl h " + many("-sHa%d:1 ", 5000), "notes": "curl h " + many("-m%d ", 8000)} {
		if _, err := curl.Read(line); err != nil {
			t.Errorf("%s: %.100v", what, err)
		}
	}
}

func many(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}
