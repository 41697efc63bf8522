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

// A complaint is an unexpected event in a page.
type complaint struct {
	text  string
	never bool // [Page.Tolerate] does not excuse it
}

// complaints are the unexpected events of a tab. They are recorded on a goroutine of the tab.
type complaints struct {
	tab context.Context // of chromedp

	mu        sync.Mutex
	own       string // "" before the first page
	asked     map[network.RequestID]string
	said      []complaint
	tolerated []string
}

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

// record handles every event of the tab. It must not call the tab.
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
		go func() { // a call here would block the page
			_, _ = chromedp.Call(c.tab, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		}()
	case *page.EventWindowOpen:
		c.add(true, "a window was opened: %s", shorten(e.URL))
	case *inspector.EventTargetCrashed:
		c.add(true, "the tab crashed")
	}
}

// recordRequest records a request, and complains if it goes to another origin.
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

// Tolerate excuses complaints that contain one of the texts, such as "401" or "net::ERR_". Dialogs, windows
// and requests to other origins are never excused.
func (p *Page) Tolerate(texts ...string) {
	p.seen.mu.Lock()
	defer p.seen.mu.Unlock()
	p.seen.tolerated = append(p.seen.tolerated, texts...)
}

// Complaints returns the complaints so far that are not tolerated.
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

// check fails the test for complaints.
func (p *Page) check() {
	p.t.Helper()
	// Events that precede this call are recorded before its answer.
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
