// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// A complaint is something that should not have happened in a page.
type complaint struct {
	text  string
	never bool // there is no excuse for it
}

// complaints are what happened unseen. They are heard on a goroutine of the tab.
type complaints struct {
	tab context.Context // of chromedp

	mu        sync.Mutex
	own       string // origin; "" before the first page
	asked     map[network.RequestID]string
	said      []complaint
	tolerated []string
}

// setOrigin sets the origin of the page, unless it has one.
func (c *complaints) setOrigin(url string) error {
	from, err := origin(url)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.own == "" {
		c.own = from
	}
	return err
}

func (c *complaints) add(never bool, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said = append(c.said, complaint{fmt.Sprintf(format, args...), never})
}

// record is told of every event in the tab. It must not ask the tab anything.
func (c *complaints) record(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		c.add(false, "exception: %s", exceptionText(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			c.add(false, "console: %s", argumentsText(e.Args))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			c.add(false, "%s: %s (%s:%d)", e.Entry.Source, e.Entry.Text, e.Entry.URL, e.Entry.LineNumber+1)
		}
	case *network.EventRequestWillBeSent:
		c.recordRequest(e.RequestID, e.Request.URL)
	case *network.EventWebSocketCreated:
		c.recordRequest(e.RequestID, e.URL)
	case *network.EventLoadingFailed:
		if !e.Canceled {
			c.mu.Lock()
			url := c.asked[e.RequestID]
			c.mu.Unlock()
			c.add(false, "request failed: %s: %s %s", url, e.ErrorText, e.BlockedReason)
		}
	case *page.EventJavascriptDialogOpening:
		c.add(true, "a dialog (%s) says %q", e.Type, shorten(e.Message))
		go func() { // or the page hangs
			_, _ = chromedp.Call(c.tab, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		}()
	case *page.EventWindowOpen:
		c.add(true, "a window was opened: %s", shorten(e.URL))
	case *inspector.EventTargetCrashed:
		c.add(true, "the tab crashed")
	}
}

// recordRequest notes what a request is for, and complains where it goes to somebody else.
func (c *complaints) recordRequest(id network.RequestID, url string) {
	c.mu.Lock()
	if c.asked == nil {
		c.asked = map[network.RequestID]string{}
	}
	c.asked[id] = shorten(url)
	own := c.own
	c.mu.Unlock()
	if strings.HasPrefix(url, "data:") || url == "about:blank" || strings.HasPrefix(url, "blob:"+own+"/") {
		return
	}
	if from, err := origin(url); err != nil || from != own {
		c.add(true, "a request to somebody else: %s", shorten(url))
	}
}

// Tolerate excuses what goes wrong in the page where the text says so, as the test
// provokes it: "401", "net::ERR_". There is no excuse for dialogs, windows and requests
// to others.
func (p *Page) Tolerate(texts ...string) {
	p.seen.mu.Lock()
	defer p.seen.mu.Unlock()
	p.seen.tolerated = append(p.seen.tolerated, texts...)
}

// Complaints are what has gone wrong in the page so far and is not tolerated.
func (p *Page) Complaints() []string {
	p.seen.mu.Lock()
	defer p.seen.mu.Unlock()
	var texts []string
	for _, said := range p.seen.said {
		excused := slices.ContainsFunc(p.seen.tolerated, func(text string) bool { return strings.Contains(said.text, text) })
		if said.never || !excused {
			texts = append(texts, said.text)
		}
	}
	return texts
}

// check fails the test for what went wrong.
func (p *Page) check() {
	p.t.Helper()
	// What the page has done by now is heard before its answer to this.
	ctx, cancel := context.WithTimeout(p.ctx, pollInterval*25)
	defer cancel()
	_, _ = chromedp.Run(ctx, chromedp.Evaluate[bool]("new Promise(resolve => setTimeout(() => resolve(true)))", chromedp.EvalAwaitPromise))
	for _, text := range p.Complaints() {
		p.t.Errorf("in the page: %s", text)
	}
}

func exceptionText(details *runtime.ExceptionDetails) string {
	text := details.Text
	if details.Exception != nil {
		text += " " + details.Exception.Description
	}
	return fmt.Sprintf("%s (%s:%d)", text, details.URL, details.LineNumber+1)
}

func argumentsText(args []*runtime.RemoteObject) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = arg.Description
		if words[i] == "" {
			words[i] = strings.Trim(string(arg.Value), `"`)
		}
	}
	return shorten(strings.Join(words, " "))
}
