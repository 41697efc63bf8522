// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
)

// JS returns a value as a JavaScript literal.
func JS(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // the test passed a value without a JSON form
	}
	return string(text)
}

// textExpression returns an expression for the visible text of the first element of a selector, or null.
func (p *Page) textExpression(selector string) string {
	at := p.root()
	if selector != "" {
		at += "?.querySelector(" + JS(selector) + ")"
	} else if p.scope == "" {
		at = "document.body"
	}
	return at + "?.innerText"
}

// Text returns the visible text of the first element of a selector or, if it is empty, of the scope of [Page.In].
func (p *Page) Text(selector string) string {
	p.t.Helper()
	text := Eval[*string](p, p.textExpression(selector))
	if text == nil {
		p.t.Fatalf("text of %s: there is none", selector)
	}
	return *text
}

// WaitText waits until the text of an element, as of [Page.Text], contains a text. It ignores case, and
// treats white space as one space.
func (p *Page) WaitText(selector, want string) {
	p.t.Helper()
	p.waitText(selector, want, true)
}

// WaitNoText waits until the text of an element does not contain a text.
func (p *Page) WaitNoText(selector, unwanted string) {
	p.t.Helper()
	p.waitText(selector, unwanted, false)
}

func (p *Page) waitText(selector, sought string, want bool) {
	p.t.Helper()
	plain := func(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }
	p.waitUntil(fmt.Sprintf("waiting for text %q in %q: %v", sought, selector, want), func(ctx context.Context) error {
		text, err := chromedp.Run(ctx, chromedp.Evaluate[*string](p.textExpression(selector)))
		switch {
		case err != nil:
			return err
		case text == nil && want:
			return fmt.Errorf("there is no element")
		case text != nil && strings.Contains(plain(*text), plain(sought)) != want:
			return fmt.Errorf("the text is %q", shorten(*text))
		}
		return nil
	})
}

// WaitVisible waits until an element of a selector is visible.
func (p *Page) WaitVisible(selector string) {
	p.t.Helper()
	p.Poll(selector+" can be seen", fmt.Sprintf(
		"[...(%s?.querySelectorAll(%s) ?? [])].some(e => e.checkVisibility({visibilityProperty: true, opacityProperty: true}))", p.root(), JS(selector)))
}

// WaitHidden waits until no element of a selector is visible.
func (p *Page) WaitHidden(selector string) {
	p.t.Helper()
	p.Poll(selector+" cannot be seen", fmt.Sprintf(
		"[...(%s?.querySelectorAll(%s) ?? [])].every(e => !e.checkVisibility({visibilityProperty: true, opacityProperty: true}))", p.root(), JS(selector)))
}
