// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/metehq/mete/proof/meted"
)

// axe is the source of axe-core, which make setup installs next to this file.
var axe = sync.OnceValues(func() (string, error) {
	root, err := meted.FindRoot()
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(filepath.Join(root, "proof", "browser", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		return "", fmt.Errorf("axe-core is not there: run make setup: %w", err)
	}
	return string(source), nil
})

// axeRun checks WCAG up to level AA and axe's best practices.
const axeRun = `axe.run(document, {
	runOnly: {type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']},
	resultTypes: ['violations'],
}).then(r => JSON.stringify({tested: r.passes.length, violations: r.violations}))`

const mostPlaces = 3

type axeResult struct {
	Tested     int
	Violations []struct {
		ID, Impact, Help string
		Nodes            []axeNode
	}
}

type axeNode struct {
	Target         []any
	HTML           string
	FailureSummary string
}

// Axe fails the test for each accessibility fault that axe-core finds in the current page.
func (p *Page) Axe() {
	p.t.Helper()
	source, err := axe()
	if err != nil {
		p.t.Fatal(err)
	}
	p.settle()
	var result axeResult
	p.must("axe", func(ctx context.Context) error {
		// The script runs in an isolated world, which the page's security policy does not affect.
		tree, err := chromedp.Call(ctx, page.GetFrameTree, cdp.Empty{})
		if err != nil {
			return err
		}
		world, err := chromedp.Call(ctx, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: tree.FrameTree.Frame.ID, WorldName: "axe"})
		if err != nil {
			return err
		}
		within := func(p *runtime.EvaluateParams) { p.ContextID = world.ExecutionContextID }
		// An isolated world lives as long as its document: axe may have been loaded before.
		there, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("typeof axe === 'object'", within))
		if err != nil {
			return err
		}
		if !there {
			if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](source+"\n;true", within)); err != nil {
				return err
			}
		}
		text, err := chromedp.Run(ctx, chromedp.Evaluate[string](axeRun, within, chromedp.EvalAwaitPromise))
		if err != nil {
			return err
		}
		return json.Unmarshal([]byte(text), &result)
	})
	if result.Tested == 0 {
		p.t.Error("axe has tested nothing")
	}
	for _, v := range result.Violations {
		// A button may be partly below the bar of a phone: users scroll.
		v.Nodes = slices.DeleteFunc(v.Nodes, func(n axeNode) bool { return strings.Contains(n.FailureSummary, "partially obscured") })
		for i, node := range v.Nodes {
			if i == mostPlaces {
				p.t.Errorf("axe: %s: and at %d more", v.ID, len(v.Nodes)-i)
				break
			}
			p.t.Errorf("axe: %s (%s): %s\n\tat %v: %s\n\t%s", v.ID, v.Impact, v.Help, node.Target, shorten(node.HTML),
				strings.ReplaceAll(node.FailureSummary, "\n", "\n\t"))
		}
	}
}

// settle waits until animations have ended. It ignores the level of a filling bucket, which may move for minutes.
func (p *Page) settle() {
	p.t.Helper()
	p.Poll("nothing moves", `document.fonts.status === 'loaded' && document.getAnimations().every(a =>
		a.playState !== 'running' || a.effect?.getComputedTiming().endTime === Infinity || a.effect?.target?.matches('.tank-fluid'))`)
}
