// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/metehq/mete/proof/meted"
)

const pollInterval = 40 * time.Millisecond

// A Page is a tab with its own storage and cache. Only the test's goroutine may call its methods. The test
// fails if an action is impossible.
type Page struct {
	t     testing.TB
	ctx   context.Context // of chromedp
	size  Size
	theme Theme
	seen  *complaints
	scope string // selector of the searched part: see In
}

// Open opens an empty tab. The test's cleanup checks its complaints and closes it. Serve the site before:
// cleanup runs in reverse order.
func Open(t testing.TB, size Size, theme Theme) *Page {
	t.Helper()
	seen := &complaints{}
	ctx, cancel := chromedp.NewContext(runningChromium(t), chromedp.WithNewBrowserContext(), chromedp.WithListener(seen.record))
	if err := chromedp.Do(ctx); err != nil {
		cancel()
		t.Fatalf("open a tab: %v", err)
	}
	seen.tab = ctx
	p := &Page{t: t, ctx: ctx, size: size, theme: theme, seen: seen}
	t.Cleanup(func() {
		defer cancel()
		if t.Failed() {
			p.report()
		}
		p.check()
	})
	p.applyLook(false)
	return p
}

// In returns the page limited to the first element of a selector: page.In("dialog[open]").Click("button", "Cancel").
func (p *Page) In(selector string) *Page {
	part := *p
	part.scope = selector
	return &part
}

func (p *Page) must(what string, do func(context.Context) error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, meted.Patience)
	defer cancel()
	if err := do(ctx); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

func (p *Page) waitUntil(what string, do func(context.Context) error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, meted.Patience)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var last error
	for {
		err := do(ctx)
		if err == nil {
			return
		}
		if last == nil || !errors.Is(err, context.DeadlineExceeded) {
			last = err // instead of the error of the deadline
		}
		select {
		case <-ctx.Done():
			p.t.Fatalf("%s: %v", what, last)
		case <-ticker.C:
		}
	}
}

// Goto opens a URL and waits until its document has loaded. The first URL sets the origin of the page.
// Requests to other origins fail the test.
func (p *Page) Goto(to string) {
	p.t.Helper()
	if err := p.seen.setOrigin(to); err != nil {
		p.t.Fatal(err)
	}
	p.must("go to "+to, func(ctx context.Context) error { return chromedp.Do(ctx, chromedp.Navigate(to)) })
}

func (p *Page) Reload() {
	p.t.Helper()
	p.must("reload", func(ctx context.Context) error { return chromedp.Do(ctx, chromedp.Reload()) })
}

// Back goes back in the history.
func (p *Page) Back() {
	p.t.Helper()
	p.must("go back", func(ctx context.Context) error { return chromedp.Do(ctx, chromedp.NavigateBack()) })
}

func (p *Page) URL() string {
	p.t.Helper()
	return Eval[string](p, "location.href")
}

// Eval returns the value of a JavaScript expression in the page, after awaiting a promise. Use [JS] to quote values.
func Eval[T any](p *Page, expression string) T {
	p.t.Helper()
	var value T
	p.must(shorten(expression), func(ctx context.Context) (err error) {
		value, err = chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
		return err
	})
	return value
}

// Poll waits until a JavaScript expression is true. The failure message describes the condition with what.
func (p *Page) Poll(what, expression string) {
	p.t.Helper()
	p.waitUntil("waiting until "+what, func(ctx context.Context) error {
		yes, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")", chromedp.EvalAwaitPromise))
		if err == nil && !yes {
			err = fmt.Errorf("not so: %s", shorten(expression))
		}
		return err
	})
}

// origin returns scheme://host:port of a URL. Each file has its own origin.
func origin(of string) (string, error) {
	u, err := url.Parse(of)
	if err != nil {
		return "", err
	}
	if u.Scheme == "file" {
		return "file://" + u.Path, nil
	}
	if u.Host == "" {
		return "", fmt.Errorf("%s has no host", shorten(of))
	}
	return u.Scheme + "://" + u.Host, nil
}

func shorten(text string) string {
	const most = 200
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

func (p *Page) report() {
	ctx, cancel := context.WithTimeout(p.ctx, meted.Patience)
	defer cancel()
	whole := *p
	whole.scope = ""
	const state = `location.href + "\n" + document.documentElement.innerText.slice(0, 2500)`
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](state))
	if err != nil {
		p.t.Logf("the page cannot be asked: %v", err)
		return
	}
	p.t.Logf("the page at the end: %s", text)
	picture, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{})
	if err != nil {
		p.t.Logf("no picture of it: %v", err)
		return
	}
	p.t.Logf("a picture of it: %s", p.keepScreenshot("failed", picture.Data))
}
