// SPDX-License-Identifier: Apache-2.0

// Package browser tests pages in a real Chromium. It finds elements by role and name, and acts by mouse,
// touch and keyboard, as users do.
//
// A test serves a site, opens a page, acts on it and waits for the effect:
//
//	site := browser.Serve(t, policy)
//	page := browser.Open(t, browser.Phone, browser.Dark)
//	page.Goto(site.Page("keys"))
//	page.SignIn(browser.OperateToken)
//	page.Click("button", "Block key")
//	page.WaitText("#status", "blocked")
//	page.Axe()
//
// At the end, each page fails its test for unexpected events. They are console errors, exceptions, windows and
// dialogs, violations of the content security policy, failed requests, and requests to other origins. A test that
// provokes such an event calls [Page.Tolerate].
//
// All functions poll, for at most [meted.Patience].
package browser
