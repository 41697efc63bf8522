// SPDX-License-Identifier: Apache-2.0

// Package browser looks at pages in a real Chromium, as people do: by what is on
// them, with the mouse, a finger and the keyboard.
//
// A test serves a site, opens a page, and says what it does and waits for:
//
//	site := browser.Serve(t, policy)
//	page := browser.Open(t, browser.Phone, browser.Dark)
//	page.Goto(site.Page("keys"))
//	page.SignIn(browser.OperateToken)
//	page.Click("button", "Block key")
//	page.WaitText("#status", "blocked")
//	page.Axe()
//
// At its end each page fails its test for what went wrong unseen: errors on the
// console, exceptions, what the content security policy had to refuse, requests that
// failed, requests to anybody else, windows and dialogs that scripts opened. A test
// that provokes something of this says so with [Page.Tolerate].
//
// Nothing here waits for a time: it polls until [meted.Patience] is over.
package browser
