// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var keys = map[string]string{
	"Tab": kb.Tab, "Enter": kb.Enter, "Escape": kb.Escape, "Space": " ", "Delete": kb.Delete, "Backspace": kb.Backspace,
	"ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight, "ArrowUp": kb.ArrowUp, "ArrowDown": kb.ArrowDown,
	"Home": kb.Home, "End": kb.End, "PageUp": kb.PageUp, "PageDown": kb.PageDown,
}

var modifiers = map[string]chromedp.Modifier{
	"Shift": chromedp.ModifierShift, "Control": chromedp.ModifierCtrl, "Alt": chromedp.ModifierAlt, "Meta": chromedp.ModifierMeta,
}

// Press presses a key with modifiers: "Enter", "a", "Shift+Tab".
func (p *Page) Press(key string) {
	p.t.Helper()
	held := strings.Split(key, "+")
	last := held[len(held)-1]
	code, ok := keys[last]
	if !ok && len([]rune(last)) == 1 {
		code, ok = last, true
	}
	var with []chromedp.Modifier
	for _, name := range held[:len(held)-1] {
		modifier, known := modifiers[name]
		ok = ok && known
		with = append(with, modifier)
	}
	if !ok {
		p.t.Fatalf("press %s: there is no such key", key)
	}
	p.must("press "+key, func(ctx context.Context) error {
		return chromedp.Do(ctx, chromedp.KeyEvent(code, chromedp.KeyModifiers(with...)))
	})
}

// Focused returns the role and name of the focused element, such as `button "Block key"`, or "".
func (p *Page) Focused() string {
	p.t.Helper()
	var focused string
	p.must("looking for the focus", func(ctx context.Context) error {
		active, err := chromedp.Run(ctx, chromedp.Evaluate[*runtime.RemoteObject]("document.activeElement === document.body ? null : document.activeElement"))
		if err != nil || active.ObjectID == "" {
			return err
		}
		alone := false
		tree, err := chromedp.Call(ctx, accessibility.GetPartialAXTree, accessibility.GetPartialAXTreeParams{ObjectID: active.ObjectID, FetchRelatives: &alone})
		if err == nil && len(tree.Nodes) > 0 {
			focused = elementOf(tree.Nodes[0]).String()
		}
		return err
	})
	return focused
}

// mostTabs is the number of Tab presses after which an element counts as unreachable.
const mostTabs = 150

// TabTo presses Tab until the element is focused. It returns the elements that were focused before, in order.
func (p *Page) TabTo(role, name string) []string {
	p.t.Helper()
	var passed []string
	for range mostTabs {
		p.Press("Tab")
		focused := p.Focused()
		gotRole, gotName, _ := strings.Cut(focused, " ")
		if gotRole == role && matchesName(name, strings.Trim(gotName, `"`)) {
			return passed
		}
		passed = append(passed, focused)
	}
	p.t.Fatalf("Tab does not come to %s: it comes to\n%s", element{role: role, name: name}, strings.Join(passed[:min(len(passed), 40)], "\n"))
	return nil
}

// WaitFocused waits until the element is focused.
func (p *Page) WaitFocused(role, name string) {
	p.t.Helper()
	p.waitUntil("waiting for the focus", func(context.Context) error {
		focused := p.Focused()
		gotRole, gotName, _ := strings.Cut(focused, " ")
		if gotRole != role || !matchesName(name, strings.Trim(gotName, `"`)) {
			return fmt.Errorf("%s has it, want %s", focused, element{role: role, name: name})
		}
		return nil
	})
}
