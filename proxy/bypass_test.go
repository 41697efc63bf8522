// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/proxy"
	"github.com/metehq/mete/storetest"
)

// A credulous upstream reads requests like CGI, Rack, PHP, Express, IIS and their plugins, each in its own way,
// and counts the requests per client.
type credulous struct {
	mu     sync.Mutex
	served map[string]int
}

func (c *credulous) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var readings []string
	for name, values := range r.Header {
		folded := strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
				return r
			}
			return '_'
		}, strings.ToUpper(name))
		for _, value := range append(values, strings.Join(values, ",")) {
			switch folded {
			case "X_API_KEY":
				readings = append(readings, "key "+value)
			case "X_FORWARDED_FOR", "X_REAL_IP", "TRUE_CLIENT_IP", "CLIENT_IP", "X_CLIENT_IP", "CF_CONNECTING_IP":
				readings = append(readings, "client "+value)
			case "X_ORIGINAL_URL", "X_REWRITE_URL":
				readings = append(readings, "path "+value)
			case "X_HTTP_METHOD_OVERRIDE", "X_METHOD_OVERRIDE":
				readings = append(readings, "method "+value)
			case "X_FORWARDED_HOST", "X_HOST", "X_ORIGINAL_HOST":
				readings = append(readings, "host "+value)
			}
		}
	}
	for piece := range strings.FieldsFuncSeq(r.URL.RawQuery, func(r rune) bool { return r == '&' || r == ';' }) {
		key, value, _ := strings.Cut(piece, "=")
		key, _ = url.QueryUnescape(key)
		key, _, _ = strings.Cut(strings.ToLower(key), "[")
		if strings.ReplaceAll(key, ".", "_") == "api_key" {
			readings = append(readings, "query "+value)
		}
	}
	for piece := range strings.FieldsFuncSeq(strings.Join(r.Header["Cookie"], ";"), func(r rune) bool { return r == ';' || r == ',' }) {
		key, value, _ := strings.Cut(piece, "=")
		if strings.EqualFold(strings.TrimSpace(key), "sid") {
			value, _ = url.PathUnescape(strings.Trim(value, `"`))
			readings = append(readings, "session "+value)
		}
	}
	readings = append(readings, "host "+r.Host, "path "+r.URL.Path, "method "+r.Method)
	slices.Sort(readings)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, reading := range slices.Compact(readings) {
		c.served[reading]++
	}
}

// For every repeated, respelled or added value, the upstream serves nothing more often than its rule allows, and
// sees no forged address.
func TestBypass(t *testing.T) {
	const burst, tries = 3, 8
	up := &credulous{}
	upstream := serve(t, up.ServeHTTP)
	m, err := policy.Load(fmt.Appendf(nil, `{"rules": [
		{"name": "key", "limit_keys": ["header:x-api-key"], %[1]s},
		{"name": "query", "limit_keys": ["query:api_key"], %[1]s},
		{"name": "session", "limit_keys": ["cookie:sid"], %[1]s},
		{"name": "host", "limit_keys": ["host"], "match": {"host": ["real", "127.0.0.1"]}, %[1]s},
		{"name": "admin", "limit_keys": [], "match": {"path": "/admin/*"}, %[1]s},
		{"name": "delete", "limit_keys": ["method"], "match": {"method": "DELETE"}, %[1]s}]}`,
		fmt.Sprintf(`"algorithm": "token_bucket", "algorithm_config": {"rate": "1/1h", "burst": %d}`, burst)), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		what   string // by the upstream's reading
		target string // "N" in it and in fields is another number each time
		fields []string
		served int // of all tries
	}{
		{"client 6.6.6.6", "/", []string{"X-Real-IP: 6.6.6.6", "X_Forwarded_For: 6.6.6.6", "X-Forwarded-For: 6.6.6.6", "Client-IP: 6.6.6.6"}, 0},
		{"key real", "/", []string{"X-Api-Key: real"}, burst},
		{"key real", "/", []string{"X_Api_Key: real"}, 0},
		{"key real", "/", []string{"X.Api.Key: real"}, 0},
		{"key real", "/", []string{"X-Api-Key: N", "X_Api_Key: real"}, 0},
		{"key real", "/", []string{"X-Api-Key: N", "X-Api-Key: real"}, 0},
		{"query real", "/?api_key=real", nil, burst},
		{"query real", "/?api_key=N&api_key=real", nil, 0},
		{"query real", "/?api_key=N&api%5Fkey=real", nil, 0},
		{"query real", "/?api.key=real", nil, 0},
		{"query real", "/?API_KEY=real", nil, 0},
		{"query real", "/?api_key[]=real", nil, 0},
		{"query real", "/?x=N;api_key=real", nil, 0},
		{"session real", "/", []string{"Cookie: sid=real"}, burst},
		{"session real", "/", []string{"Cookie: sid=N; sid=real"}, 0},
		{"session real", "/", []string{"Cookie: sid=N", "Cookie: sid=real"}, 0},
		{"session real", "/", []string{`Cookie: sid="real"`, "X-N: N"}, burst},
		{"session real", "/", []string{"Cookie: sid=%72eal"}, burst},
		{"session real", "/", []string{"Cookie: SID=real"}, 0},
		{"session real", "/", []string{"Cookie: sid =real"}, 0},
		{"session real", "/", []string{"Cookie: x=N, sid=real"}, 0},
		{"path /admin/x", "/admin/x", nil, burst},
		{"path /admin/x", "/", []string{"X-Original-URL: /admin/x"}, 0},
		{"path /admin/x", "/", []string{"X-Rewrite-URL: /admin/x"}, 0},
		{"path /admin/x", "/", []string{"X_Original_URL: /admin/x"}, 0},
		{"method DELETE", "/", []string{"X-HTTP-Method-Override: DELETE"}, 0},
		{"method DELETE", "/", []string{"X_Method_Override: DELETE"}, 0},
		{"host real", "/", []string{"X-Forwarded-Host: real"}, 0},
		{"host real", "/", []string{"X-Host: real"}, 0},
		{"host real", "/", []string{"X-Original-Host: real"}, 0},
	} {
		lim, err := mete.New(storetest.NewModel(func() bucket.Instant { return 1 }), m, mete.Config{})
		if err != nil {
			t.Fatal(err)
		}
		mw, err := httplimit.New(lim, httplimit.Config{})
		if err != nil {
			t.Fatal(err)
		}
		up.served = map[string]int{}
		for protocol, send := range speak(t, newProxy(t, upstream, mw, proxy.Config{})) {
			for i := range tries {
				n := fmt.Sprint(i)
				r := clientRequest()
				r.Host = "host-" + n
				r.URL.Path, r.URL.RawQuery, _ = strings.Cut(strings.ReplaceAll(tt.target, "N", n), "?")
				r.Header = http.Header{}
				for _, field := range tt.fields {
					name, value, _ := strings.Cut(strings.ReplaceAll(field, "N", n), ": ")
					r.Header[name] = append(r.Header[name], value)
				}
				if _, err := send(r); err != nil {
					t.Fatalf("%s by %s: %v", tt.fields, protocol, err)
				}
			}
		}
		if got := up.served[tt.what]; got != tt.served {
			t.Errorf("%s %q: the upstream served %q %d times, want %d", tt.target, tt.fields, tt.what, got, tt.served)
		}
		for reading := range up.served {
			if strings.HasPrefix(reading, "client ") && reading != "client 127.0.0.1" && reading != "client ::1" {
				t.Errorf("%q: the upstream believes %q", tt.fields, reading)
			}
		}
	}
}
