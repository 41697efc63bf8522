// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/internal/ui"
)

//go:embed assets
var embedded embed.FS

// indexName is the page; everything else is loaded by it.
const indexName = "index.html"

// secured are on every answer. The policy lets a page load files of its own origin only, run
// no script that stands in markup, and be in no frame.
var secured = http.Header{
	"Content-Security-Policy": {"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; manifest-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"},
	"X-Content-Type-Options":       {"nosniff"},
	"Referrer-Policy":              {"no-referrer"},
	"Cross-Origin-Opener-Policy":   {"same-origin"},
	"Cross-Origin-Resource-Policy": {"same-origin"},
	"Permissions-Policy":           {"camera=(), geolocation=(), microphone=()"},
}

// An asset is a file as it is sent.
type asset struct {
	kind          string // Content-Type
	plain, zipped []byte
	tag           string // without quotes
}

// kinds are by extension. What has none here is not served.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".json": "application/json",
}

// assets returns the files of this package by path, and those of package ui below ui/. The
// caller must not change the map.
var assets = sync.OnceValues(func() (map[string]*asset, error) {
	all := map[string]*asset{}
	own, err := fs.Sub(embedded, "assets")
	if err == nil {
		err = add(all, "", own)
	}
	if err == nil {
		err = add(all, "ui/", ui.Files())
	}
	if err != nil {
		return nil, fmt.Errorf("dashboard: assets: %w", err)
	}
	return all, nil
})

func add(all map[string]*asset, prefix string, from fs.FS) error {
	return fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		kind, ok := kinds[path.Ext(name)]
		if err != nil || d.IsDir() || !ok {
			return err
		}
		text, err := fs.ReadFile(from, name)
		if err == nil {
			all[prefix+name], err = newAsset(kind, text)
		}
		return err
	})
}

func newAsset(kind string, text []byte) (*asset, error) {
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, _ = w.Write(text) // a Buffer takes all
	if err := w.Close(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	return &asset{kind, text, zipped.Bytes(), hex.EncodeToString(sum[:12])}, nil
}

// serve serves one file. A browser keeps it, and asks each time whether it still is the
// same: a page is never made of files of two versions.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, name string) {
	if name == "" {
		name = indexName
	}
	a := h.files[name]
	switch {
	case a == nil:
		refuse(w, r, http.StatusNotFound, "the dashboard has no such file")
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, r, http.StatusMethodNotAllowed, "this takes GET")
		return
	}
	header := w.Header()
	header.Set("Content-Type", a.kind)
	header.Set("Cache-Control", "no-cache")
	header.Set("Vary", "Accept-Encoding")
	content, tag := a.plain, a.tag
	if takesGzip(r) {
		content, tag = a.zipped, a.tag+"-gz"
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("Etag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

func refuse(w http.ResponseWriter, r *http.Request, status int, detail string) {
	ratelimitfields.Write(w, r, api.NewProblem(status, detail))
}

// takesGzip reports whether who asks takes what is compressed (RFC 9110 §12.5.3): it is
// named, and not with a weight of 0.
func takesGzip(r *http.Request) bool {
	for _, sent := range r.Header["Accept-Encoding"] {
		for one := range strings.SplitSeq(sent, ",") {
			coding, weight, _ := strings.Cut(one, ";")
			if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
				continue
			}
			_, q, weighed := strings.Cut(weight, "=")
			return !weighed || strings.Trim(strings.TrimSpace(q), "0.") != ""
		}
	}
	return false
}
