// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/proof/browser"
)

// contentPolicy is the Content-Security-Policy of each response.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; manifest-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

var (
	// linked matches the links and imports of a page or module.
	linked = regexp.MustCompile(`(?:\b(?:src|href)="|\bfrom '|\bimport '|\bimport\(')([^"'#]+)["']`)

	// Nothing of this is in a file of ours: the content policy would refuse it.
	forbidden = regexp.MustCompile(`(?i)<script>|<style|\sstyle=["']|\son[a-z]+="|\binnerHTML\b|\bouterHTML\b|insertAdjacentHTML|document\.write|\beval\(|new Function\(|(?:\b(?:src|href)=|fetch\(|import\(|url\()["']?https?://`)
)

// Every file that a page is made of is served, by the headers that guard it, once; and
// asks for no other's.
func shellAssets(t *testing.T, site *browser.Site) {
	root, err := url.Parse(site.AdminURL + "/dashboard/")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var follow func(at *url.URL)
	follow = func(at *url.URL) {
		if seen[at.Path] {
			return
		}
		seen[at.Path] = true
		if at.Host != root.Host || !strings.HasPrefix(at.Path, root.Path) {
			t.Errorf("%s is asked for: it is not the dashboard's", at)
			return
		}
		body := asset(t, at)
		vendored := strings.Contains(at.Path, "/uplot/")
		if found := forbidden.FindString(body); found != "" && !vendored {
			t.Errorf("%s has %q", at.Path, found)
		}
		for _, m := range linked.FindAllStringSubmatch(body, -1) {
			if next, err := at.Parse(m[1]); err == nil && !vendored {
				follow(next)
			}
		}
	}
	follow(root)
	if len(seen) < 20 {
		t.Errorf("the dashboard is made of %d files, want more", len(seen))
	}
}

// asset gets a file, looks at its headers, and gets it again as browsers do that have it.
func asset(t *testing.T, at *url.URL) string {
	t.Helper()
	get := func(tag string) (*http.Response, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if tag != "" {
			req.Header.Set("If-None-Match", tag)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		return resp, string(body)
	}
	resp, body := get("")
	if resp.StatusCode != http.StatusOK || body == "" {
		t.Errorf("%s: %s, want it to be there", at.Path, resp.Status)
	}
	for name, want := range map[string]string{
		"Content-Security-Policy": contentPolicy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-cache",
	} {
		if got := resp.Header.Values(name); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %s is %q, want %q", at.Path, name, got, want)
		}
	}
	kinds := map[string]string{"": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
	if got, want := resp.Header.Get("Content-Type"), kinds[path.Ext(at.Path)]; got != want {
		t.Errorf("%s: its type is %q, want %q", at.Path, got, want)
	}
	if tag := resp.Header.Get("Etag"); tag == "" {
		t.Errorf("%s: has no tag", at.Path)
	} else if again, body := get(tag); again.StatusCode != http.StatusNotModified || body != "" {
		t.Errorf("%s: %s for who has it, want 304", at.Path, again.Status)
	}
	return body
}
