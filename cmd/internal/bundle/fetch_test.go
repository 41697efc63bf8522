// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

func TestParseURL(t *testing.T) {
	for address, want := range map[string]string{
		"https://policies.example.com/policy.yaml":              "",
		"https://user:canary@policies.example.com/a/b?t=canary": "",
		"http://127.0.0.1:8000/policy.yaml":                     "",
		"http://[::1]/policy.yaml":                              "",
		"http://localhost/policy.yaml":                          "",
		"http://policies.example.com/policy.yaml":               "http:// is allowed only for loopback addresses",
		"http://10.0.0.1/policy.yaml":                           "http:// is allowed only for loopback addresses",
		"ftp://policies.example.com/policy.yaml":                `the scheme is "ftp"`,
		"https://policies.example.com":                          "has no file",
		"https://policies.example.com/a/":                       "has no file",
		"https:///policy.yaml":                                  "has no host",
		"https://a:canary@b c/policy.yaml":                      "not a valid URL",
		"https://policies.example.com/policy.yaml#canary":       "fragment",
	} {
		_, err := ParseURL(address)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary")) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}

// Credentials are sent to the source, and never shown.
func TestFetch_Credentials(t *testing.T) {
	src := newSource(t, bundleOf(1, 5))
	var users []string
	src.handle = func(_ http.ResponseWriter, r *http.Request) bool {
		user, password, _ := r.BasicAuth()
		users = append(users, user+" "+password+" "+r.URL.RawQuery)
		return false
	}
	c := src.config(t, t.TempDir())
	c.URL.User, c.URL.RawQuery = url.UserPassword("canary", "secret-canary"), "token=canary"
	s := newServer(t, c)
	s.load(1)
	if len(users) != 2 || users[0] != "canary secret-canary token=canary" || users[1] != users[0] {
		t.Errorf("sent %q, want user, password and query with both requests", users)
	}
	src.set(func() { src.handle = nil; src.status = http.StatusForbidden })
	s.poll(1, "status 403")
	src.Close()
	err := s.Poll(t.Context(), s.apply, false)
	if err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("a source that is gone: %v", err)
	}
	if strings.Contains(s.log.String(), "canary") || strings.Contains(s.Status().Source, "canary") {
		t.Errorf("credentials are shown: %+v\n%s", s.Status(), s.log)
	}
}

// Redirects are bounded, and never leave TLS.
func TestFetch_Redirects(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for name, test := range map[string]struct{ to, want string }{
		"to another path":     {"/moved/policy.yaml", ""},
		"for ever":            {"/policy.yaml", "more than 3 redirects"},
		"to http on loopback": {plain.URL + "/policy.yaml?canary", "redirect from https:// to http:// rejected"},
		"to http":             {"http://policies.example.com/policy.yaml?canary", "redirect from https:// to http:// rejected"},
		"to a file":           {"file:///etc/passwd", "redirect from https:// to file:// rejected"},
	} {
		t.Run(name, func(t *testing.T) {
			src := newSource(t, bundleOf(1, 5))
			src.handle = func(w http.ResponseWriter, r *http.Request) bool {
				if rest, moved := strings.CutPrefix(r.URL.Path, "/moved"); moved {
					r.URL.Path = rest
					return false
				}
				to := test.to
				if strings.HasPrefix(to, "/moved") && strings.HasSuffix(r.URL.Path, ".sig") {
					to += ".sig"
				}
				http.Redirect(w, r, to, http.StatusFound)
				return true
			}
			s := newServer(t, src.config(t, t.TempDir()))
			_, err := s.Load(t.Context())
			if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "canary")) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// The place of a redirect does not learn the query of the address, by which a source may know its
// clients.
func TestFetch_RedirectReferer(t *testing.T) {
	src := newSource(t, bundleOf(1, 5))
	src.handle = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.Referer(), "canary") {
			t.Errorf("%s has the referer %s", r.URL.Path, r.Referer())
		}
		rest, moved := strings.CutPrefix(r.URL.Path, "/moved")
		if moved {
			r.URL.Path = rest
			return false
		}
		http.Redirect(w, r, "/moved"+r.URL.Path, http.StatusFound)
		return true
	}
	c := src.config(t, t.TempDir())
	c.URL.RawQuery = "token=canary"
	newServer(t, c).load(1)
}

// The signature is at the address of the bundle with the same escapes.
func TestFetch_EscapedPath(t *testing.T) {
	src := newSource(t, bundleOf(1, 5))
	src.handle = func(_ http.ResponseWriter, r *http.Request) bool {
		rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/team%2Fa/")
		if !ok {
			t.Errorf("asked for %s", r.URL.EscapedPath())
		}
		r.URL.Path = "/" + rest
		return false
	}
	c := src.config(t, t.TempDir())
	at, err := url.Parse(src.URL + "/team%2Fa/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c.URL = at
	newServer(t, c).load(1)
}

// Answers are bounded, also answers that hide their size.
func TestFetch_Bounds(t *testing.T) {
	for name, handle := range map[string]func(w http.ResponseWriter, r *http.Request){
		"a large one": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99999999999")
			_, _ = w.Write([]byte("x"))
		},
		"one without an end": func(w http.ResponseWriter, _ *http.Request) {
			page := []byte(strings.Repeat("#", 1<<20))
			for range policy.MaxFileBytes>>20 + 1 {
				_, _ = w.Write(page)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			src := newSource(t, bundleOf(1, 5))
			src.handle = func(w http.ResponseWriter, r *http.Request) bool { handle(w, r); return true }
			s := newServer(t, src.config(t, t.TempDir()))
			if _, err := s.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "larger than 8388608 bytes") {
				t.Errorf("%v, want that it is too large", err)
			}
		})
	}
}

// A server with a certificate by another authority is no source.
func TestFetch_Authority(t *testing.T) {
	src := newSource(t, bundleOf(1, 5))
	c := src.config(t, t.TempDir())
	c.CAFile = ""
	if _, err := newServer(t, c).Load(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("%v, want that the certificate is not trusted", err)
	}
	c.CAFile = t.TempDir() + "/none.pem"
	if _, err := New(c); err == nil {
		t.Error("a missing file of authorities is accepted")
	}
}

func TestShown(t *testing.T) {
	u, err := url.Parse("https://user:canary@host:8443/a/b?x=canary")
	if err != nil {
		t.Fatal(err)
	}
	if got := Shown(u); got != "https://host:8443/a/b" {
		t.Errorf("shown as %s", got)
	}
}
