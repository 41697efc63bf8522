// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"io/fs"
	"maps"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/ui"
)

// maxLines is the most lines of a file of the pages, as for Go files.
const maxLines = 500

var (
	imports   = regexp.MustCompile(`(?m)^(?:import|export)\s[^'";]*from '(\.[^']+)';|\bimport\(['"](\.[^'"]+)['"]\)|^import '(\.[^']+)';`)
	links     = regexp.MustCompile(`(?:src|href)="([^"#]+)"`)
	pageNames = regexp.MustCompile(`\./pages/\$\{`)

	// markup matches code that makes a browser interpret text as markup or code. The page's security
	// policy forbids it.
	markup = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|javascript:|cssText|setAttribute\('style'|\sstyle="|\son[a-z]+="`)

	// elsewhere matches URLs of other hosts.
	elsewhere = regexp.MustCompile(`https?://[^\s'"` + "`" + `<)]+`)
)

func allAssets(t *testing.T) map[string]*asset {
	t.Helper()
	all, err := assets()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// own returns the files that are not third-party code, by path.
func own(t *testing.T) map[string]string {
	t.Helper()
	files := allAssets(t)
	all := map[string]string{}
	for name, a := range files {
		if !strings.HasPrefix(name, "ui/uplot/") {
			all[name] = string(a.plain)
		}
	}
	return all
}

// Every imported file exists, and every file is imported.
func TestAssets_Whole(t *testing.T) {
	all := own(t)
	used := map[string]bool{"index.html": true}
	ask := func(from, name string) {
		name = path.Join(path.Dir(from), name)
		if _, ok := allAssets(t)[name]; !ok {
			t.Errorf("%s asks for %s, which is not there", from, name)
		}
		used[name] = true
	}
	for _, m := range links.FindAllStringSubmatch(all["index.html"], -1) {
		ask("index.html", m[1])
	}
	for name, text := range all {
		for _, m := range imports.FindAllStringSubmatch(text, -1) {
			ask(name, m[1]+m[2]+m[3])
		}
		if pageNames.MatchString(text) { // the router's
			for page := range all {
				used[page] = used[page] || path.Dir(page) == "pages" && path.Ext(page) == ".js"
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !used[name] {
			t.Errorf("nothing asks for %s", name)
		}
	}
}

// No file refers to another host or interprets text as markup.
func TestAssets_Safe(t *testing.T) {
	for name, text := range own(t) {
		if m := markup.FindString(text); m != "" {
			t.Errorf("%s has %q", name, m)
		}
		for _, address := range elsewhere.FindAllString(text, -1) {
			if !strings.HasPrefix(address, "http://www.w3.org/") && !strings.Contains(address, "example") && !strings.Contains(address, "127.0.0.1") {
				t.Errorf("%s has the address %s", name, address)
			}
		}
		if lines := strings.Count(text, "\n"); lines > maxLines {
			t.Errorf("%s has %d lines, more than %d", name, lines, maxLines)
		}
		if head, _, _ := strings.Cut(strings.TrimPrefix(text, "<!doctype html>\n"), "\n"); path.Ext(name) != ".svg" && !strings.Contains(head, "SPDX-License-Identifier: Apache-2.0") {
			t.Errorf("%s begins with %q, not with its licence", name, head)
		}
	}
}

// Third-party code has its license beside it.
func TestAssets_Licence(t *testing.T) {
	files := ui.Files()
	for _, name := range []string{"uplot/uPlot.iife.min.js", "uplot/uPlot.min.css"} {
		if _, err := fs.Stat(files, name); err != nil {
			t.Error(err)
		}
	}
	if text, err := fs.ReadFile(files, "uplot/LICENSE"); err != nil || !strings.Contains(string(text), "MIT License") {
		t.Errorf("the licence is %.40q, %v", text, err)
	}
}

// Compressed files are sent only to clients that accept gzip.
func TestAssets_Compressed(t *testing.T) {
	h, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for accept, want := range map[string]bool{
		"": false, "gzip": true, "br, gzip;q=0.5": true, "deflate, GZip": true, "gzip;q=1.0": true, "gzip;q=0.001": true,
		"gzip;q=0": false, "gzip; q=0.000, br": false, "x-gzipped": false, "identity": false,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept-Encoding", accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != want || strings.HasSuffix(w.Header().Get("Etag"), `-gz"`) != want || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: compressed %t, %v; want %t", accept, got, w.Header(), want)
		}
	}
}
