// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// SignIn signs in with a token, in the dialog or through the menu. It tolerates an earlier 401.
func (p *Page) SignIn(token string) {
	p.t.Helper()
	p.Tolerate("status of 401")
	p.Poll("there is a dialog, or none will come", "document.querySelector('dialog[open], .conn[data-state=live], .conn[data-state=ended]')")
	if !p.Has("dialog", "Sign in") {
		p.Click("button", "Account *")
		p.In("#topbar").Click("button", "Sign in*")
	}
	dialog := p.In("dialog[open]")
	dialog.Fill("Token", token)
	dialog.Click("button", "Sign in")
	p.WaitGone("dialog", "Sign in")
}

// Remember makes the tab signed in with a token, from the next document on.
func (p *Page) Remember(token string) {
	p.t.Helper()
	p.must("remember the token", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: "sessionStorage.getItem('mete-token') ?? sessionStorage.setItem('mete-token', " + JS(token) + ")",
		})
		return err
	})
}
