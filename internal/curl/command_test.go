// SPDX-License-Identifier: Apache-2.0

package curl_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/curl"
)

// sent writes what a command sends on one line: "GET host/path | Name: value | …",
// without what curl sends by itself.
func sent(m *curl.Message) string {
	parts := []string{m.Method + " " + m.Host + m.Target}
	for _, f := range m.Header {
		if !f.Assumed {
			parts = append(parts, f.Name+": "+f.Value)
		}
	}
	return strings.Join(parts, " | ")
}

func TestCommand(t *testing.T) {
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
		{"dot segments as they are", `curl --path-as-is http://h/a/../c`, `GET h/a/../c`},
		{"a user in the URL", `curl http://me:p%40ss@h/`, `GET h/ | Authorization: Basic bWU6cEBzcw==`},
		{"a user", `curl -u me:pass h`, `GET h/ | Authorization: Basic bWU6cGFzcw==`},
		{"a user without a password", `curl --user me h`, `GET h/ | Authorization: Basic bWU6`},
		{"a token", `curl --oauth2-bearer t1 h`, `GET h/ | Authorization: Bearer t1`},
		{"a header before the user", `curl -u me:pass -H 'Authorization: Bearer t' h`, `GET h/ | Authorization: Bearer t`},
		{"headers", `curl h -H 'X-Api-Key: k1' --header "X-B:b" -H'X-C:  c  '`, `GET h/ | X-Api-Key: k1 | X-B: b | X-C: c`},
		{"an empty header", `curl h -H 'X-A;'`, `GET h/ | X-A: `},
		{"a removed header", `curl h -H 'X-A:' -H 'Accept:' -H 'User-Agent:'`, `GET h/`},
		{"another host", `curl http://127.0.0.1/x -H 'Host: api.example.com'`, `GET api.example.com/x`},
		{"a header twice", `curl h -H 'A: 1' -H 'A: 2'`, `GET h/ | A: 1 | A: 2`},
		{"pseudo headers of a browser", `curl https://h/x -H ':authority: h' -H 'a: 1'`, `GET h/x | a: 1`},
		{"cookies", `curl h -b 'a=1; b=2' --cookie c=3`, `GET h/ | Cookie: a=1; b=2;c=3`},
		{"an agent and a referrer", `curl h -A me/1 -e 'http://from/;auto'`, `GET h/ | User-Agent: me/1 | Referer: http://from/`},
		{"no agent", `curl h -A ''`, `GET h/`},
		{"a range", `curl -r 0-99 h`, `GET h/ | Range: bytes=0-99`},
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
		{"a query of its own", `curl h/x --url-query 'q=a b' --url-query +r=1`, `GET h/x?q=a+b&r=1`},
		{"JSON", `curl --json '{"a":1}' h`, `POST h/`},
		{"a form", `curl -F file=@photo.png -F a=1 h`, `POST h/`},
		{"an upload", `curl -T file h/f`, `PUT h/f`},
		{"another target", `curl -X OPTIONS --request-target '*' h`, `OPTIONS h*`},
		{"--url", `curl --url http://h/x -s`, `GET h/x`},
		{"behind --", `curl -s -- http://h/x`, `GET h/x`},
		{"not ASCII", `curl 'http://h/é?q=ü'`, `GET h/%C3%A9?q=%C3%BC`},
		{"globs that are none", `curl -g 'http://h/a[1]{b}'`, `GET h/a[1]{b}`},
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
		{"Windows", "curl \"https://h/x?a=1^&b=2\" ^\r\n  -H \"A: 1\" ^\r\n  -H \"B: say \\\"hi\\\"\"", `GET h/x?a=1^&b=2 | A: 1 | B: say "hi"`},
		{"Windows, newer", "curl ^\"https://h/x?a=1^&b=^%^20^\" ^\n  -H ^\"A: ^\\^\"1^\\^\"^\" ^\n  -H ^\"B: 50^%^\"", `GET h/x?a=1&b=%20 | A: "1" | B: 50%`},
		{"Windows, with data", "curl.exe ^\"https://h/^\" ^\n  --data-raw ^\"a^\n\nb^\"", `POST h/`},
		{"flags that are taken back", `curl --compressed --no-compressed --no-buffer -# h`, `GET h/`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := curl.Command(tt.line)
			if err != nil {
				t.Fatal(err)
			}
			if got := sent(&m); got != tt.want {
				t.Errorf("%s\nsends %s\nwant  %s", tt.line, got, tt.want)
			}
		})
	}
}

// What curl sends by itself can matter to a rule, and is told apart.
func TestCommand_Assumed(t *testing.T) {
	for line, want := range map[string]string{
		`curl h`:                        "User-Agent: " + curl.AssumedAgent + ", Accept: */*",
		`curl h -A a -H 'Accept: x'`:    "",
		`curl -d a=1 -d b h`:            "User-Agent: " + curl.AssumedAgent + ", Accept: */*, Content-Length: 5, Content-Type: application/x-www-form-urlencoded",
		`curl -A a --json {} h`:         "Accept: application/json, Content-Type: application/json, Content-Length: 2",
		`curl -A a -F a=1 h`:            "Accept: */*, Content-Type: multipart/form-data",
		`curl -A a -G -d a=1 h`:         "Accept: */*",
		`curl -A a --compressed h`:      "Accept: */*, Accept-Encoding: deflate, gzip, br, zstd",
		`curl -A a -d x -H 'accept:' h`: "Content-Length: 1, Content-Type: application/x-www-form-urlencoded",
	} {
		m, err := curl.Command(line)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range m.Header {
			if f.Assumed {
				got = append(got, f.Name+": "+f.Value)
			}
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%s assumes %q, want %q", line, got, want)
		}
	}
}

func TestCommand_Notes(t *testing.T) {
	for line, want := range map[string][]string{
		`curl -sSL --max-time 5 -o out h`:        {"ignored: --max-time 5", "ignored: --output out"},
		`curl -m 5 -m 5 h`:                       {"ignored: --max-time 5"},
		`curl -x http://u:secret@p h --pass abc`: {"ignored: --proxy", "ignored: --pass"},
		`curl --digest -u a:b h`:                 {"ignored: --digest, by which the request may have other headers"},
		`curl -b jar.txt h`:                      {"ignored: --cookie with the name of a file, which is not read"},
		`curl h -H "Authorization: $TOKEN"`:      {"$TOKEN is taken as it stands: no shell puts a value in its place"},
		`curl h/$ID`:                             {"$ID is taken as it stands: no shell puts a value in its place"},
		`curl h/${ID}x`:                          {"$ID is taken as it stands: no shell puts a value in its place"},
		`curl h/x?a=1&b=2`:                       {`what stands behind "&" is no part of the request: put the URL in quotes if it goes on there`},
		`curl h/x | jq .`:                        {`what stands behind "|" is no part of the request`},
		`curl h/x;`:                              nil,
		`curl -T f h/`:                           {"the file of --upload-file is not read"},
		`curl -F a=1 h`:                          {"the body of --form is not made: its Content-Length is not known"},
	} {
		m, err := curl.Command(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if !slices.Equal(m.Notes, want) {
			t.Errorf("%s: notes %q, want %q", line, m.Notes, want)
		}
	}
}

func TestCommand_Mistakes(t *testing.T) {
	for line, want := range map[string]string{
		"":                          "line 1, column 1: there is no curl command",
		"wget h":                    "line 1, column 1: this is no curl command; begin it with curl",
		"curl":                      "line 1, column 5: the command has no URL",
		"curl -s\n":                 "line 1, column 8: the command has no URL",
		"curl h -H":                 "line 1, column 8: the value of --header is missing",
		"curl h --max-tme 5":        "line 1, column 8: curl has no option --max-tme; did you mean --max-time?",
		"curl h --header='A: 1'":    "line 1, column 8: curl has no option --header; curl takes --header and its value as two words",
		"curl h --zzzzzzzzzzzzzz=s": "line 1, column 8: curl has no option --zzzzzzzzzzzzzz",
		"curl h -sé":                "line 1, column 8: curl has no option -é",
		"curl a b":                  "line 1, column 8: this is a second URL; one request is explained at a time; put a value that has a space in quotes",
		"curl a --next b":           "line 1, column 8: one request is explained at a time; leave out what begins with --next",
		"curl -K file":              "line 1, column 6: options in a file are not read; write them here",
		"curl h -d @file":           "line 1, column 11: data in a file are not read; write them here, with --data-raw if they begin with @, or leave them out",
		"curl h --data-urlencode a@f": "line 1, column 25: data in a file are not read; write them here, with --data-raw if they begin with @, " +
			"or leave them out",
		"curl h -H @file":                    "line 1, column 11: headers in a file are not read; write them here",
		"curl h \\\n -H 'no header'":         "line 2, column 5: this is no header; write NAME: VALUE, or NAME; for an empty one",
		"curl h \\\n -H 'a b: c'":            "line 2, column 5: this is no name of a header",
		"curl h -H $'Secret: a\\nb'":         "line 1, column 11: of the header Secret the value has a control character",
		"curl h -H $'Secret: \\xff'":         "line 1, column 11: of the header Secret the value is not UTF-8",
		"curl 'h":                            "line 1, column 6: the quote ' is not closed",
		`curl h -H "A`:                       `line 1, column 11: the quote " is not closed`,
		`curl h -H $'A\'`:                    `line 1, column 11: the quote $' is not closed`,
		"curl ^\"h ^\n":                      `line 1, column 7: the quote " is not closed`,
		"curl h -H 'A: 1'\n -H 'B: 2'":       `line 2, column 2: the command ended with the line before; end that line with a \ if it goes on here`,
		`curl h -H "A: $(cat key)"`:          "line 1, column 15: a shell would run a command here; write what it prints in its place",
		"curl `url`":                         "line 1, column 6: a shell would run a command here; write what it prints in its place",
		"curl ftp://h/x":                     "line 1, column 6: the URL begins with ftp://; write one that begins with http:// or https://",
		"curl http://":                       "line 1, column 6: the URL has no host; write one such as http://localhost:8080/",
		"curl 'http://h/a b'":                "line 1, column 6: the URL has a space; encode it, as %20 for a space; --data-urlencode with --get does",
		"curl -G h -d 'a b'":                 "line 1, column 9: the URL has a space; encode it, as %20 for a space; --data-urlencode with --get does",
		"curl 'http://h/{a,b}'":              "line 1, column 6: curl makes several requests of [] and {} in a URL; add --globoff if they stand for themselves",
		"curl -I -d a h":                     "line 1, column 9: --head has no body, and this is one; leave out --head, or add --get",
		"curl -F a=1 -d b h":                 "line 1, column 13: a body is either --form or --data, not both",
		"curl -F a h":                        "line 1, column 9: a part of a form is NAME=CONTENT",
		"curl -G -F a=1 h":                   "line 1, column 9: --get puts data into the URL, and a form is none; say --data-urlencode",
		"curl -X 'A B' h":                    "line 1, column 9: this is no method; write one such as GET",
		"curl h --expand-url '{{a}}'":        "line 1, column 8: variables of curl are not replaced; write their values where they stand",
		"curl -V":                            "line 1, column 6: this asks for the version, and makes no request",
		"curl h \xff":                        "line 1, column 8: the text is not UTF-8",
		"curl h \x00":                        "line 1, column 8: the text has a NUL",
		"curl " + strings.Repeat("x", 1<<16): "line 1, column 65537: the text is longer than 65536 bytes; leave out the body of the request",
	} {
		_, err := curl.Command(line)
		e, ok := errors.AsType[*curl.Error](err)
		if !ok || e.Error() != "curl: "+want {
			t.Errorf("%.80q:\ngot  %v\nwant curl: %s", line, err, want)
		}
	}
}

// Secrets are not repeated by what is said of a command.
func TestCommand_Secrets(t *testing.T) {
	for _, line := range []string{
		"curl -u me:hunter2 -x http://u:hunter2@p --pass hunter2 -E cert:hunter2 -U u:hunter2 --tlspassword hunter2 http://u:hunter2@h/",
		"curl h --usr=hunter2",
		"curl h -u me:hunter2 -H 'Authorization: hunter2' -H 'B'",
		"curl h -H 'Bad Name: hunter2'",
		"curl ftp://me:hunter2@h",
	} {
		m, err := curl.Command(line)
		if strings.Contains(strings.Join(m.Notes, " "), "hunter2") || err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: notes %q, error %v", line, m.Notes, err)
		}
	}
}
