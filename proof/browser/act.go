// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"errors"
	"fmt"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// Click clicks the only element with a role and name, or taps it on a phone. It waits until there is exactly
// one and the middle of it is not covered. It retries if the page moved before the click.
func (p *Page) Click(role, name string) {
	p.t.Helper()
	p.waitUntil("click "+element{role: role, name: name}.String(), func(ctx context.Context) error {
		e, err := p.findOne(ctx, role, name)
		if err != nil {
			return err
		}
		x, y, err := scrollIntoView(ctx, e)
		if err != nil {
			return err
		}
		if _, err := callOn[bool](ctx, e, await); err != nil {
			return err
		}
		p.press(x, y)
		missed, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("globalThis.meteClicked?.then(clicked => !clicked) ?? false", chromedp.EvalAwaitPromise))
		if err == nil && missed {
			return errors.New("it was not there any more when it was clicked")
		}
		return nil // the click left the page
	})
}

// await makes the page record whether an element or its label is clicked. A press is not enough: a button
// that moves away from the pointer gets no click. The click of a mouse comes in the same task as its
// pointerup. The click of a tap comes later, and much later on a busy machine. A second tap would then close
// the menu that the first one opens.
const await = `function () {
	const mine = node => this.contains(node) || node.contains?.(this) && node.tagName === 'LABEL' || [...(this.labels ?? [])].some(l => l.contains(node));
	globalThis.meteClicked = new Promise(resolve => {
		addEventListener('click', event => resolve(mine(event.target)), {capture: true, once: true});
		addEventListener('pointerup', event => setTimeout(() => resolve(false), event.pointerType === 'mouse' ? 0 : 20_000), {capture: true, once: true});
		addEventListener('pointercancel', () => resolve(false), {capture: true, once: true});
		setTimeout(() => resolve(false), 40_000);
	});
	return true;
}`

// ClickAt clicks or taps the first element of a selector: for elements without a role.
func (p *Page) ClickAt(selector string) {
	p.t.Helper()
	var x, y float64
	p.waitUntil("click "+selector, func(ctx context.Context) error {
		at, err := chromedp.Run(ctx, chromedp.Evaluate[[]float64](fmt.Sprintf(
			"(e => { if (!e) return []; e.scrollIntoView({block: 'center', behavior: 'instant'}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })(%s?.querySelector(%s))",
			p.root(), JS(selector))))
		if err == nil && len(at) == 0 {
			err = errors.New("there is none")
		}
		if err == nil {
			x, y = at[0], at[1]
		}
		return err
	})
	p.press(x, y)
}

func (p *Page) press(x, y float64) {
	p.t.Helper()
	p.must("click", func(ctx context.Context) error {
		if p.size.phone {
			return chromedp.Do(ctx, chromedp.TapXY(x, y))
		}
		return chromedp.Do(ctx, chromedp.MouseEvent(chromedp.MouseMoved, x, y), chromedp.MouseClickXY(x, y))
	})
}

// Hover moves the mouse over an element.
func (p *Page) Hover(role, name string) {
	p.t.Helper()
	p.waitUntil("hover over "+element{role: role, name: name}.String(), func(ctx context.Context) error {
		e, err := p.findOne(ctx, role, name)
		if err != nil {
			return err
		}
		x, y, err := scrollIntoView(ctx, e)
		if err != nil {
			return err
		}
		return chromedp.Do(ctx, chromedp.MouseEvent(chromedp.MouseMoved, x, y))
	})
}

// scrollIntoView scrolls to an element and returns its middle. It fails if the element is disabled, or if
// another element covers the middle.
func scrollIntoView(ctx context.Context, e element) (x, y float64, err error) {
	if _, err := chromedp.Call(ctx, dom.ScrollIntoViewIfNeeded, dom.ScrollIntoViewIfNeededParams{BackendNodeID: e.id}); err != nil {
		return 0, 0, err
	}
	layout, err := chromedp.Call(ctx, dom.GetContentQuads, dom.GetContentQuadsParams{BackendNodeID: e.id})
	if err != nil {
		return 0, 0, err
	}
	if len(layout.Quads) == 0 || len(layout.Quads[0]) != 8 {
		return 0, 0, errors.New("it takes no room")
	}
	for i, coordinate := range layout.Quads[0] {
		if i%2 == 0 {
			x += coordinate / 4
		} else {
			y += coordinate / 4
		}
	}
	wrong, err := callOn[string](ctx, e, `function (x, y) {
		if (this.matches?.(':disabled, [aria-disabled=true]')) return 'it is disabled';
		const met = document.elementFromPoint(x, y);
		if (!met) return 'it is outside of the window';
		const labels = [...(this.labels ?? [])];
		if (this.contains(met) || met.contains(this) && getComputedStyle(met).pointerEvents !== 'none' && met.tagName === 'LABEL' || labels.some(l => l.contains(met))) return '';
		return 'something is before it: ' + met.outerHTML.slice(0, 200);
	}`, x, y)
	if err == nil && wrong != "" {
		err = errors.New(wrong)
	}
	return x, y, err
}

var fillable = []string{"textbox", "searchbox", "spinbutton", "combobox", "slider", "Date", "DateTime", "InputTime"}

// Fill sets the field with a label: it types the text, chooses the option with that value or label, or moves
// the slider.
func (p *Page) Fill(label, value string) {
	p.t.Helper()
	typed := false
	p.waitUntil(fmt.Sprintf("fill in %q", label), func(ctx context.Context) error {
		e, err := p.field(ctx, label)
		if err != nil {
			return err
		}
		// Text is typed below. Other values are set here, with the events of an input.
		how, err := callOn[string](ctx, e, `function (value) {
			if (this.disabled || this.readOnly) return 'it is disabled or read-only';
			this.focus();
			const told = () => { for (const type of ['input', 'change']) this.dispatchEvent(new Event(type, {bubbles: true})); };
			if (this instanceof HTMLSelectElement) {
				const option = [...this.options].find(o => o.value === value || o.label.trim() === value);
				if (!option) return 'its options are ' + [...this.options].map(o => o.value + ' ' + o.label.trim()).join(', ');
				this.value = option.value;
				told();
				return 'set';
			}
			if (['range', 'date', 'datetime-local', 'time', 'color'].includes(this.type)) {
				this.value = value;
				told();
				return this.value === value || Number(this.value) === Number(value) ? 'set' : 'it became ' + this.value;
			}
			this.select?.();
			if (this.isContentEditable) getSelection().selectAllChildren(this);
			return 'type';
		}`, value)
		typed = how == "type"
		if err == nil && how != "type" && how != "set" {
			err = errors.New(how)
		}
		return err
	})
	if typed && value == "" {
		p.Press("Delete")
	} else if typed {
		p.Type(value)
	}
}

func (p *Page) field(ctx context.Context, label string) (element, error) {
	var all []element
	for _, role := range fillable {
		found, err := p.find(ctx, role, label)
		if err != nil {
			return element{}, err
		}
		all = append(all, found...)
	}
	if len(all) != 1 {
		return element{}, fmt.Errorf("there are %d such fields: %v", len(all), all)
	}
	return all[0], nil
}

// Value returns the value of the field with a label.
func (p *Page) Value(label string) string {
	p.t.Helper()
	var value string
	p.waitUntil(fmt.Sprintf("value of %q", label), func(ctx context.Context) error {
		e, err := p.field(ctx, label)
		if err == nil {
			value, err = callOn[string](ctx, e, "function () { return this.value ?? this.innerText; }")
		}
		return err
	})
	return value
}

// Type inserts text at the focus, in one step as from a clipboard.
func (p *Page) Type(text string) {
	p.t.Helper()
	p.must("type", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, input.InsertText, input.InsertTextParams{Text: text})
		return err
	})
}
