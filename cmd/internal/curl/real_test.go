// SPDX-License-Identifier: Apache-2.0

package curl_test

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/metehq/mete/cmd/internal/curl"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/requesttext"
	"github.com/metehq/mete/policy"
)

// The same command lines are given to a shell, and so to curl itself: its server
// receives the requests that this package reads. URL stands for the address of that server.
var realLines = []string{
	`curl URL`,
	`curl URL/a/b?x=1`,
	`curl 'URL?x=1'`,
	`curl 'URL/x?'`,
	`curl 'URL/x#f'`,
	`curl 'URL/a/./b/../c/..'`,
	`curl 'URL/a//b/../../c'`,
	`curl URL/../x`,
	`curl 'URL/é?q=ü&r=%C3%BC'`,
	`curl 'URL/a%2Fb%20c?d=%26'`,
	`curl -u me:pass URL/`,
	`curl -u me: URL/`,
	`curl -u me:pass -H 'Authorization: Bearer t' URL/`,
	`curl URL/ -H 'X-Api-Key: k1' --header "X-B:b" -H'X-C:  c  '`,
	`curl URL/ -H 'X-A;' -H 'Accept:' -H 'User-Agent:'`,
	`curl URL/x -H 'Host: api.example.com'`,
	`curl URL/ -H 'A: 1' -H 'A: 2'`,
	`curl URL/ -b 'a=1; b=2' --cookie c=3`,
	`curl URL/ -b 'a=1' -H 'Cookie: d=4'`,
	`curl URL/ -A me/1 -e 'http://from/;auto'`,
	`curl URL/ -A ''`,
	`curl -X PATCH URL/`,
	`curl -XDELETE URL/1`,
	`curl -sSLXPUT URL/`,
	`curl -I URL/`,
	`curl URL/ -d a=1 -d b=2`,
	`curl -X PUT URL/ --data-raw @x`,
	`curl URL/ -d a -H 'Content-Type: text/plain'`,
	`curl -G URL/x -d a=1 --data-urlencode 'q=a b&c' -d z --data-urlencode '=x=y' --data-urlencode 'é'`,
	`curl -G 'URL/x?y=0' -d a=1`,
	`curl -GI URL/ -d a=1`,
	`curl --json '{"a":1}' URL/`,
	`curl --json '{"a":' --json '1}' URL/ -H 'Accept: text/plain'`,
	`curl -sg 'URL/a[1]{b}'`,
	`curl --url URL/x -s`,
	`curl -s -- URL/x`,
	`curl URL/ -H 'A: it'"'"'s "ok" \n' -H "B: \"1\" \\ \n"`,
	`curl URL/ -H $'A: it\'s \u0021 \x41 \101 \\ \q \U0001F600'`,
	"curl 'URL/x' \\\n  -H 'A: 1' \\\n  -H 'B: 2'\n",
	`curl -s URL/x | cat`,
	`curl URL/x >/dev/null 2>&1 -H 'A: 1'`,
	`curl URL/x # a comment`,
	`curl -m 60 --retry 0 -o /dev/null --no-keepalive -4 URL/x`,
}

func TestRead_AsCurlSends(t *testing.T) {
	program := proctest.Find(t, "curl", "curl")
	shell := proctest.Find(t, "bash", "bash")
	var received atomic.Pointer[http.Request]
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received.Store(r.Clone(r.Context())) }))
	server.Config.DisableGeneralOptionsHandler = true
	server.Start()
	t.Cleanup(server.Close)
	for _, line := range realLines {
		line = strings.ReplaceAll(line, "URL", server.URL)
		t.Run(line, func(t *testing.T) {
			var r requesttext.Request
			sent, err := curl.Read(line)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.AddHTTP(sent.Request, sent.Assumed...); err != nil {
				t.Fatal(err)
			}
			received.Store(nil)
			cmd := exec.CommandContext(t.Context(), shell, "-c", line)
			cmd.Env = []string{"PATH=" + path.Dir(program) + ":/usr/bin:/bin", "HOME=" + t.TempDir(), "NO_PROXY=*", "LC_ALL=C.UTF-8"}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("curl: %v\n%s", err, out)
			}
			real := received.Load()
			if real == nil {
				t.Fatal("curl sent nothing")
			}
			if sent.Request.Method != real.Method {
				t.Errorf("method %q, curl sends %q", sent.Request.Method, real.Method)
			}
			compareFacts(t, &r, real)
			compareHeaders(t, &sent, real)
		})
	}
}

// compareFacts compares attributes with the attributes that an endpoint reads of a request.
func compareFacts(t *testing.T, r *requesttext.Request, real *http.Request) {
	t.Helper()
	source, err := httpfacts.New(httpfacts.Config{UnverifiedClaims: true})
	if err != nil {
		t.Fatal(err)
	}
	facts := source.Facts(real)
	defer facts.Release()
	names := []string{"method", "path", "host"}
	for name := range real.URL.Query() {
		names = append(names, "query:"+name)
	}
	for _, c := range real.Cookies() {
		names = append(names, "cookie:"+c.Name)
	}
	for name := range r.Attributes {
		names = append(names, name)
	}
	for _, name := range names {
		a, err := policy.ParseAttribute(name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "header:user-agent" && slices.Contains(r.Assumed, name) {
			continue // versions differ
		}
		got, ok := r.Attributes[a.String()]
		want, there := facts.Lookup(a)
		if got != want || ok != there {
			t.Errorf("%s is %q, %v; of what curl sends it is %q, %v", name, got, ok, want, there)
		}
	}
}

// compareHeaders wants the same headers, in the order of each name.
func compareHeaders(t *testing.T, sent *httpapi.CurlRequest, real *http.Request) {
	t.Helper()
	got := sent.Request.Header.Clone()
	if slices.Contains(sent.Assumed, "User-Agent") {
		got.Set("User-Agent", real.UserAgent())
	}
	for name := range real.Header {
		if !slices.Equal(got[name], real.Header[name]) {
			t.Errorf("header %s is %q, curl sends %q", name, got[name], real.Header[name])
		}
		delete(got, name)
	}
	for name, values := range got {
		t.Errorf("header %s is %q, curl sends none", name, values)
	}
}
