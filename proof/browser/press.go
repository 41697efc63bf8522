// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"errors"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// Hold presses an element with the mouse, calls while, and then releases the button. The test fails if the
// element gets no click, because it was replaced or moved away.
func (p *Page) Hold(role, name string, while func()) {
	p.t.Helper()
	var x, y float64
	p.waitUntil("press "+element{role: role, name: name}.String(), func(ctx context.Context) error {
		e, err := p.findOne(ctx, role, name)
		if err != nil {
			return err
		}
		if x, y, err = scrollIntoView(ctx, e); err != nil {
			return err
		}
		if _, err := callOn[bool](ctx, e, noteClick); err != nil {
			return err
		}
		if err := chromedp.Do(ctx, chromedp.MouseEvent(chromedp.MouseMoved, x, y), mouse(chromedp.MousePressed, x, y)); err != nil {
			return err
		}
		if pressed, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("globalThis.metePressed")); err != nil || pressed {
			return err
		}
		return errors.Join(errors.New("it was not there any more when it was pressed"), chromedp.Do(ctx, mouse(chromedp.MouseReleased, x, y)))
	})
	while()
	p.must("let go", func(ctx context.Context) error { return chromedp.Do(ctx, mouse(chromedp.MouseReleased, x, y)) })
	if !Eval[bool](p, "globalThis.meteHeld === true") {
		p.t.Errorf("%s was pressed and let go, and that has not clicked it", element{role: role, name: name})
	}
}

func mouse(what input.DispatchMouseEventType, x, y float64) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: what, X: x, Y: y, Button: input.MouseButtonLeft, ClickCount: 1})
		return err
	})
}

// noteClick makes the page record whether an element is pressed, and whether it is clicked.
const noteClick = `function () {
	globalThis.metePressed = globalThis.meteHeld = false;
	addEventListener('mousedown', event => { globalThis.metePressed = this.contains(event.target); }, {capture: true, once: true});
	addEventListener('click', event => { globalThis.meteHeld = this.contains(event.target); }, {capture: true, once: true});
	return true;
}`
