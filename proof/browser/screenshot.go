// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Screenshot saves a picture of the window as NAME-SIZE-THEME.png. The directory is METE_SCREENSHOTS, or that
// of the test's artifacts with go test -artifacts. Without both, it does nothing.
func (p *Page) Screenshot(name string) {
	p.t.Helper()
	p.picture(name, false)
}

// ScreenshotAll is Screenshot for the whole page.
func (p *Page) ScreenshotAll(name string) {
	p.t.Helper()
	p.picture(name, true)
}

func (p *Page) picture(name string, beyond bool) {
	p.t.Helper()
	if os.Getenv("METE_SCREENSHOTS") == "" && !keepsArtifacts() {
		return
	}
	p.settle()
	var data []byte
	p.must("take a picture", func(ctx context.Context) error {
		picture, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &beyond})
		data = picture.Data
		return err
	})
	p.keepScreenshot(name, data)
}

// PictureOf saves a picture of the page from the top of one element to the bottom of another, as wide as the window.
func (p *Page) PictureOf(path, top, bottom string) {
	p.t.Helper()
	p.settle()
	edges := Eval[[3]float64](p, fmt.Sprintf(`[document.querySelector(%q).getBoundingClientRect().top + scrollY,
		document.querySelector(%q).getBoundingClientRect().bottom + scrollY, document.documentElement.clientWidth]`, top, bottom))
	const margin = 16
	from := max(0, edges[0]-margin)
	p.must("take a picture", func(ctx context.Context) error {
		beyond := true
		picture, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &beyond,
			Clip: &page.Viewport{Y: from, Width: edges[2], Height: edges[1] + margin - from, Scale: 1}})
		if err != nil {
			return err
		}
		return os.WriteFile(path, picture.Data, 0o644)
	})
}

func keepsArtifacts() bool {
	set := flag.Lookup("test.artifacts")
	return set != nil && set.Value.String() == "true"
}

var notInFileName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

func (p *Page) keepScreenshot(name string, data []byte) string {
	p.t.Helper()
	dir := os.Getenv("METE_SCREENSHOTS")
	if dir == "" {
		dir = p.t.ArtifactDir()
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		p.t.Error(err)
	}
	if name == "failed" {
		name += "-" + p.t.Name()
	}
	path := filepath.Join(dir, notInFileName.ReplaceAllString(name+"-"+p.size.name+"-"+string(p.theme), "_")+".png")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		p.t.Error(err)
	}
	return path
}
