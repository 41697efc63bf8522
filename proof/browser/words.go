// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
)

// JS is a value as JavaScript spells it, to put into an expression.
func JS(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // of what a test has written: it cannot be
	}
	return string(text)
}

// textExpression is an expression for what is shown of the element that a selector finds
// first in the scope; null where there is none.
func (p *Page) textExpression(selector string) string {
	at := p.root()
	if selector != "" {
		at += "?.querySelector(" + JS(selector) + ")"
	} else if p.scope == "" {
		at = "document.body"
	}
	return at + "?.innerText"
}

// Text is what is shown of the element that a selector finds first; of the whole, in
// the scope of [Page.In], where the selector is empty.
func (p *Page) Text(selector string) string {
	p.t.Helper()
	text := Eval[*string](p, p.textExpression(selector))
	if text == nil {
		p.t.Fatalf("text of %s: there is none", selector)
	}
	return *text
}

// WaitText waits until what is shown of an element, as [Page.Text] has it, contains a
// text. White space counts as one space, and case does not.
func (p *Page) WaitText(selector, want string) {
	p.t.Helper()
	p.waitText(selector, want, true)
}

// WaitNoText waits until it no longer does.
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
			return fmt.Errorf("it says %q", shorten(*text))
		}
		return nil
	})
}

// WaitVisible waits until an element that a selector finds can be seen.
func (p *Page) WaitVisible(selector string) {
	p.t.Helper()
	p.Poll(selector+" can be seen", fmt.Sprintf(
		"[...(%s?.querySelectorAll(%s) ?? [])].some(e => e.checkVisibility({visibilityProperty: true, opacityProperty: true}))", p.root(), JS(selector)))
}

// WaitHidden waits until no element that a selector finds can be seen.
func (p *Page) WaitHidden(selector string) {
	p.t.Helper()
	p.Poll(selector+" cannot be seen", fmt.Sprintf(
		"[...(%s?.querySelectorAll(%s) ?? [])].every(e => !e.checkVisibility({visibilityProperty: true, opacityProperty: true}))", p.root(), JS(selector)))
}
