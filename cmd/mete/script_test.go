// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/internal/proctest"
	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite what the scripts compare outputs with")

// serverTimeout bounds every wait for a server in the scripts.
const serverTimeout = time.Minute

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"mete": main, "ratelimit": main})
}

func TestScripts(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	redis, postgres := proctest.StartRedis(t).Addr, proctest.StartPostgres(t).URL()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("REDIS", "redis://"+redis) // one for all: choose a prefix
			env.Setenv("POSTGRES", postgres)      // one for all: choose a schema
			env.Setenv("EXAMPLES", examples)
			return startUpstream(env)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"await": await,
			"http":  request,
		},
	})
}

// startUpstream gives each script a service to put mete in front of: $UPSTREAM.
func startUpstream(env *testscript.Env) error {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "upstream saw %s %s\n", r.Method, r.URL.Path)
	}))
	env.Defer(s.Close)
	env.Setenv("UPSTREAM", s.URL)
	env.Setenv("XDG_RUNTIME_DIR", filepath.Join(env.WorkDir, "run"))
	env.Setenv("GORACE", "atexit_sleep_ms=0") // or every command takes a second to end
	return nil
}

// await waits until a file matches a regular expression. Its named groups
// become variables: await out 'listening on (?P<MAIN>\S+)'.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await file regexp")
	}
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	path := ts.MkAbs(args[0])
	var text []byte
	ok := poll(func() bool {
		text, _ = os.ReadFile(path) // it may not be there yet
		return re.Match(text)
	})
	if !ok {
		ts.Fatalf("%s does not match %#q:\n%s", args[0], args[1], text)
	}
	match := re.FindSubmatch(text)
	for i, name := range re.SubexpNames() {
		if name != "" {
			ts.Setenv(name, string(match[i]))
		}
	}
}

// request sends a GET, or a POST of JSON, again until the status is the one
// that is wanted: http 200 $MAIN/readyz; http 429 $MAIN/v1/take?status=429 {...}.
func request(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: http status url [json]")
	}
	last := ""
	ok := poll(func() bool {
		last = fetch(args[1], args[2:])
		return last == args[0]
	})
	if !ok {
		ts.Fatalf("%s: %s, want %s", args[1], last, args[0])
	}
}

// poll reports whether done became true in time.
func poll(done func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), serverTimeout)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return true
}

// fetch returns the status of one request, or what went wrong.
func fetch(url string, body []string) string {
	client := http.Client{Timeout: serverTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	var resp *http.Response
	var err error
	if len(body) == 0 {
		resp, err = client.Get(url)
	} else {
		resp, err = client.Post(url, "application/json", strings.NewReader(body[0]))
	}
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	return strconv.Itoa(resp.StatusCode)
}
