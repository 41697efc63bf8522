// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// An element has the role and name that a screen reader announces.
type element struct {
	id         cdp.BackendNodeID
	role, name string
}

func (e element) String() string { return fmt.Sprintf("%s %q", e.role, e.name) }

// find returns the elements in the scope of the page with this role and name. A * in the name matches any text.
func (p *Page) find(ctx context.Context, role, name string) ([]element, error) {
	root, err := chromedp.Run(ctx, chromedp.Evaluate[*runtime.RemoteObject](p.root()))
	if err != nil {
		return nil, err
	}
	if root.ObjectID == "" {
		return nil, fmt.Errorf("there is no %s", p.scope)
	}
	answer, err := chromedp.Call(ctx, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{ObjectID: root.ObjectID, Role: role})
	if err != nil {
		return nil, err
	}
	var found []element
	for _, node := range answer.Nodes {
		if e := elementOf(node); !node.Ignored && matchesName(name, e.name) {
			found = append(found, e)
		}
	}
	return found, nil
}

// root returns a JavaScript expression for the scope of the page.
func (p *Page) root() string {
	if p.scope == "" {
		return "document"
	}
	return "document.querySelector(" + JS(p.scope) + ")"
}

func elementOf(node *accessibility.Node) element {
	return element{node.BackendDOMNodeID, text(node.Role), text(node.Name)}
}

func text(value *accessibility.Value) string {
	var s string
	if value != nil {
		_ = json.Unmarshal(value.Value, &s)
	}
	return s
}

// matchesName reports whether a name matches a pattern, in which * stands for any text.
func matchesName(pattern, name string) bool {
	name = strings.Join(strings.Fields(name), " ")
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	if !ok {
		return false
	}
	for ; ; name = name[1:] {
		if matchesName(rest, name) {
			return true
		}
		if name == "" {
			return false
		}
	}
}

func (p *Page) findOne(ctx context.Context, role, name string) (element, error) {
	found, err := p.find(ctx, role, name)
	switch {
	case err != nil:
		return element{}, err
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return element{}, fmt.Errorf("there are %d: %v; select one with In", len(found), found)
	}
	others, err := p.find(ctx, role, "*")
	return element{}, errors.Join(err, fmt.Errorf("there is none; of that role there are %v", others))
}

// Has reports whether there is such an element now.
func (p *Page) Has(role, name string) bool { return p.Count(role, name) > 0 }

// Count returns the current number of such elements.
func (p *Page) Count(role, name string) int {
	p.t.Helper()
	var found []element
	p.must("looking for "+element{role: role, name: name}.String(), func(ctx context.Context) (err error) {
		found, err = p.find(ctx, role, name)
		return err
	})
	return len(found)
}

// Wait waits until there is exactly one element with an ARIA role, such as "heading", "button", "link",
// "textbox", "dialog" or "row", and a name. A * in the name matches any text.
func (p *Page) Wait(role, name string) {
	p.t.Helper()
	p.waitUntil("waiting for "+element{role: role, name: name}.String(), func(ctx context.Context) error {
		_, err := p.findOne(ctx, role, name)
		return err
	})
}

// WaitGone waits until there is no such element.
func (p *Page) WaitGone(role, name string) {
	p.t.Helper()
	p.waitUntil("waiting until it is gone: "+element{role: role, name: name}.String(), func(ctx context.Context) error {
		found, err := p.find(ctx, role, name)
		if err == nil && len(found) > 0 {
			err = fmt.Errorf("still there: %v", found)
		}
		return err
	})
}

// callOn calls a JavaScript function with an element as this.
func callOn[T any](ctx context.Context, e element, function string, args ...any) (T, error) {
	var zero T
	node, err := chromedp.Call(ctx, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: e.id})
	if err != nil {
		return zero, err
	}
	return chromedp.Run(ctx, chromedp.CallFunctionOn[T](function, func(p *runtime.CallFunctionOnParams) {
		p.ObjectID = node.Object.ObjectID
	}, args...))
}
