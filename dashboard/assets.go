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

const indexName = "index.html"

// securityHeaders are the security headers of every response. The content security policy permits only files of
// the same origin, and forbids inline scripts and frames.
var securityHeaders = http.Header{
	"Content-Security-Policy": {"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; manifest-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"},
	"X-Content-Type-Options":       {"nosniff"},
	"Referrer-Policy":              {"no-referrer"},
	"Cross-Origin-Opener-Policy":   {"same-origin"},
	"Cross-Origin-Resource-Policy": {"same-origin"},
	"Permissions-Policy":           {"camera=(), geolocation=(), microphone=()"},
}

// An asset is a file with its compressed form.
type asset struct {
	contentType   string
	plain, zipped []byte
	tag           string // ETag without quotes
}

// contentTypes are the content types by extension. Other files are not served.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".json": "application/json",
}

// assets returns the embedded files by path, with the files of package ui below ui/. The caller must
// not modify the map.
var assets = sync.OnceValues(func() (map[string]*asset, error) {
	all := map[string]*asset{}
	own, err := fs.Sub(embedded, "assets")
	if err == nil {
		err = addAssets(all, "", own)
	}
	if err == nil {
		err = addAssets(all, "ui/", ui.Files())
	}
	if err != nil {
		return nil, fmt.Errorf("dashboard: assets: %w", err)
	}
	return all, nil
})

func addAssets(all map[string]*asset, prefix string, from fs.FS) error {
	return fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		contentType, ok := contentTypes[path.Ext(name)]
		if err != nil || d.IsDir() || !ok {
			return err
		}
		text, err := fs.ReadFile(from, name)
		if err == nil {
			all[prefix+name], err = newAsset(contentType, text)
		}
		return err
	})
}

func newAsset(contentType string, text []byte) (*asset, error) {
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, _ = w.Write(text) // a Buffer returns no errors
	if err := w.Close(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	return &asset{contentType, text, zipped.Bytes(), hex.EncodeToString(sum[:12])}, nil
}

// serveFile serves a file. Browsers must revalidate it on every use, so that a page never mixes files of two
// versions.
func (h *Handler) serveFile(w http.ResponseWriter, r *http.Request, name string) {
	if name == "" {
		name = indexName
	}
	a := h.files[name]
	switch {
	case a == nil:
		writeProblem(w, r, http.StatusNotFound, "the dashboard has no such file")
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		writeProblem(w, r, http.StatusMethodNotAllowed, "method not allowed; use GET or HEAD")
		return
	}
	header := w.Header()
	header.Set("Content-Type", a.contentType)
	header.Set("Cache-Control", "no-cache")
	header.Set("Vary", "Accept-Encoding")
	content, tag := a.plain, a.tag
	if acceptsGzip(r) {
		content, tag = a.zipped, a.tag+"-gz"
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("Etag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

func writeProblem(w http.ResponseWriter, r *http.Request, status int, detail string) {
	ratelimitfields.Write(w, r, api.NewProblem(status, detail))
}

// acceptsGzip reports whether Accept-Encoding permits gzip (RFC 9110 §12.5.3): it must be listed with a
// weight above 0.
func acceptsGzip(r *http.Request) bool {
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
