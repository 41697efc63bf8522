// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// The examples in doc/http.md are real responses of a server.
func TestDocument_HTTP(t *testing.T) {
	text, err := os.ReadFile("../doc/http.md")
	if err != nil {
		t.Fatal(err)
	}
	w, commands := newWorld(t), 0
	for _, block := range strings.Split(string(text), "\n```console\n")[1:] {
		block, _, _ = strings.Cut(block, "\n```")
		for _, part := range strings.Split("\n"+block, "\n$ ")[1:] {
			command, shown, _ := strings.Cut(part, "\n")
			commands++
			if name, pause, _ := strings.Cut(command, " "); name == "sleep" {
				d, err := time.ParseDuration(pause + "s")
				if err != nil {
					t.Fatal(err)
				}
				w.clock.advance(d)
				continue
			}
			c, err := parseCurl(command)
			if err != nil {
				t.Fatalf("%s: %v", command, err)
			}
			c.check(t, w, command, strings.TrimSpace(shown))
		}
	}
	if commands < 15 {
		t.Errorf("doc/http.md has %d commands", commands)
	}
}

// A curl is one command of that name.
type curl struct {
	method, url, body string
	header            http.Header
	headers           bool // are shown
}

func parseCurl(command string) (c curl, err error) {
	args, c := shellWords(command), curl{method: "GET", header: http.Header{}}
	if args[0] != "curl" {
		return c, fmt.Errorf("%q is not curl", args[0])
	}
	for i := 1; i < len(args); i++ {
		switch arg := args[i]; arg {
		case "-i":
			c.headers = true
		case "-X":
			i++
			c.method = args[i]
		case "-H":
			i++
			name, value, _ := strings.Cut(args[i], ": ")
			c.header.Add(name, strings.ReplaceAll(value, "$METE_TOKEN", "configure"))
		case "--json":
			i++
			if c.body = args[i]; c.method == "GET" {
				c.method = "POST"
			}
			c.header.Set("Content-Type", "application/json")
		default:
			if c.url != "" || !strings.HasPrefix(arg, "http://127.0.0.1:808") {
				return c, fmt.Errorf("%q cannot be parsed", arg)
			}
			c.url = arg
		}
	}
	return c, nil
}

// shellWords splits a command as a shell does that knows both kinds of quotes.
func shellWords(command string) (all []string) {
	var quote rune
	fields := strings.FieldsFunc(command, func(r rune) bool {
		switch {
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == quote:
			quote = 0
		}
		return quote == 0 && r == ' '
	})
	for _, f := range fields {
		all = append(all, strings.Trim(f, `'"`))
	}
	return all
}

// check runs the command and compares its output with the page. The page shows only some header fields.
func (c curl) check(t *testing.T, w *world, command, shown string) {
	t.Helper()
	u, err := url.Parse(c.url)
	if err != nil {
		t.Fatal(err)
	}
	api := w.main
	if u.Port() == "8081" {
		api = w.admin
	}
	r := httptest.NewRequest(c.method, u.RequestURI(), strings.NewReader(c.body))
	r.Header = c.header
	a := httptest.NewRecorder()
	api.ServeHTTP(a, r)
	if c.headers {
		head, rest, _ := strings.Cut(shown, "\n\n")
		lines := bufio.NewScanner(strings.NewReader(head))
		for first := true; lines.Scan(); first = false {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			status := fmt.Sprintf("HTTP/1.1 %d %s", a.Code, http.StatusText(a.Code))
			if first && lines.Text() != status || !first && !slices.Contains(headerOf(a, name), value) {
				t.Errorf("$ %s\n shows %s, and it is %s %v", command, lines.Text(), status, a.Header())
			}
		}
		shown = strings.TrimSpace(rest)
	}
	got := strings.TrimSpace(a.Body.String())
	var want bytes.Buffer
	if shown != "" {
		if err := json.Compact(&want, []byte(shown)); err != nil {
			t.Errorf("$ %s\n shows %s: %v", command, shown, err)
		}
	}
	if got != want.String() {
		t.Errorf("$ %s\n got %s\nwant %s", command, got, want.String())
	}
}

// headerOf is the values of a field in whatever spelling.
func headerOf(a *httptest.ResponseRecorder, name string) []string {
	for field, values := range a.Header() {
		if strings.EqualFold(field, name) {
			return values
		}
	}
	return nil
}
