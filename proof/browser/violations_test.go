// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/browser"
	"github.com/metehq/mete/proof/meted"
)

// auditedPolicy denies soon, and would.
const auditedPolicy = `rules:
  - name: search
    limit_keys: ["header:x-user"]
    match: {path: "/v1/search*"}
    algorithm_config: {rate: 1/10h, burst: 1}
  - name: strict
    group: strict
    mode: shadow
    limit_keys: ["header:x-user"]
    algorithm_config: {rate: 1/10h, burst: 1}
`

// audited is a site that has denied alice twice and would deny her two more requests. It also has a
// hundred denials of an hour ago, some by an attacker.
func audited(t *testing.T) *browser.Site {
	t.Helper()
	db := proctest.StartPostgres(t)
	site := browser.Serve(t, auditedPolicy, "violations: "+db.URL()+"\nviolations_raw: true\nviolations_user: header:x-user\n")
	site.Take(3, browser.Attributes{"header:x-user": "alice", "ip:address": "192.0.2.7", "method": "GET", "path": "/v1/search/shoes"})
	site.Take(3, browser.Attributes{"header:x-user": "bob", "ip:address": "192.0.2.8", "method": "GET", "path": "/v1/items"})
	sql := func(statement string) {
		t.Helper()
		if text, err := db.Psql(statement); err != nil {
			t.Fatalf("%s: %s %v", statement, text, err)
		}
	}
	sql(`INSERT INTO mete.rate_limit_violation (bucket_key, user_id, ip_address, endpoint, rule_name, limit_name, reason, requested_at, retry_after, denials)
		SELECT 'old:x-user=u' || i, 'u' || i, ('198.51.100.' || i)::inet, 'GET /v1/old/' || i, 'old', 'old', 'fixed_window_exceeded', clock_timestamp() - interval '1 hour' - interval '1 second' * i, interval '2 seconds', 2
		FROM generate_series(1, 97) i`)
	for _, text := range []string{`<img src=x onerror=alert(1)>`, `=HYPERLINK("http://x.example/","y")`, `U&'\202Etxet\0007'`} {
		if !strings.HasPrefix(text, "U&") {
			text = "'" + strings.ReplaceAll(text, "'", "''") + "'"
		}
		sql(fmt.Sprintf(`INSERT INTO mete.rate_limit_violation (bucket_key, user_id, endpoint, rule_name, limit_name, reason, requested_at, node)
			VALUES (%[1]s, %[1]s, %[1]s, %[1]s, %[1]s, %[1]s, clock_timestamp() - interval '30 minutes', %[1]s)`, text))
	}
	awaitRows(t, site, 104)
	return site
}

// awaitRows waits until the dashboard finds so many rows.
func awaitRows(t *testing.T, site *browser.Site, rows int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), meted.Patience)
	defer cancel()
	err := proctest.Poll(ctx, func(context.Context) error {
		_, text := site.Ask(http.MethodGet, site.AdminURL+"/v1/violations/histogram", browser.ReadToken, nil)
		var answer struct{ Rows int64 }
		if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Rows != rows {
			return fmt.Errorf("there are not %d rows: %s", rows, text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

const shownRows = "document.querySelectorAll('.vio-table tbody tr:not(.vio-details)').length"

func TestViolations(t *testing.T) {
	t.Parallel()
	runTogether(t, audited(t), part{"looks", violationsLook}, part{"csv", violationsCSV}, part{"hostile", violationsHostile}, part{"masked", violationsMasked})
}

// Denials are listed, counted and filtered, and a filter has an address.
func violationsLook(t *testing.T, site *browser.Site) {
	browser.Each(t, func(t *testing.T, size browser.Size, theme browser.Theme) {
		p := browser.Open(t, size, theme)
		p.Remember(browser.OperateToken)
		p.Goto(site.Page("violations"))
		p.Poll("a page of rows is shown", shownRows+" === 50")
		p.Poll("the chart is drawn", "document.querySelector('.u-over')")
		p.WaitText(".vio-total", "199 requests denied, and 2 shadow denials")
		p.Poll("the table beside the chart has all of them", `[...document.querySelectorAll('.vio-chart td')].reduce((all, cell) => all + Number(cell.textContent), 0) === 201`)
		p.WaitText(".vio-table", "192.0.2.7")
		p.WaitText(".vio-table", "GET /v1/search/shoes")
		p.Axe()
		p.CheckNoOverflow()
		p.Screenshot("violations")
		p.ClickAt(".vio-toggle")
		p.WaitText(".vio-details", "Cost")
		p.Axe()
		p.ScreenshotAll("violations-details")
		p.Click("button", "Show 50 more")
		p.Poll("the next page is shown", shownRows+" === 100")
		p.Click("button", "Show 50 more")
		p.Poll("all are shown", shownRows+" === 104")
		p.WaitHidden(".vio-foot")
		if size == browser.Phone {
			p.ClickAt(".vio-more > summary")
		}
		p.Fill("Rule", "search")
		p.Poll("only those of the rule are shown", shownRows+" === 2")
		if at := p.URL(); !strings.Contains(at, "#/violations?rule=search") {
			t.Errorf("the filter is not in the URL: %s", at)
		}
		p.Click("button", "15 min")
		p.Poll("the time is in the URL", "location.hash.includes('range=15m')")
		p.Poll("those are shown still", shownRows+" === 2")
		p.Reload()
		p.Poll("a shared URL shows the same", shownRows+" === 2")
		p.ClickAt(".col-client .vio-only")
		p.Poll("a click on an address shows it alone", "location.hash.includes('address=192.0.2.7')")
		p.Goto(site.Page("violations?mode=shadow"))
		p.WaitText(".vio-chart caption", "2 in total, by rule: ")
		p.WaitText(".vio-chart", ", in shadow")
		p.Goto(site.Page("violations?user=nobody"))
		p.WaitText("main", "No denials match")
		p.Axe()
		p.CheckNoOverflow()
		p.Screenshot("violations-none")
	})
}

// The saved file contains all visible rows, and no cell is a formula.
func violationsCSV(t *testing.T, site *browser.Site) {
	p := browser.Open(t, browser.Desktop, browser.Light)
	p.Remember(browser.OperateToken)
	p.Goto(site.Page("violations"))
	p.Poll("rows are shown", shownRows+" === 50")
	// Keep the file's contents in the page.
	browser.Eval[bool](p, `(() => {
		const made = URL.createObjectURL;
		URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return made.call(URL, blob); };
		HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; };
		return true;
	})()`)
	p.Click("button", "Save CSV")
	p.WaitText("#toasts", "Saved 104 rows as violations-")
	p.Poll("it is saved", "window.saved && /^violations-\\d{8}T\\d{6}Z\\.csv$/.test(window.savedAs)")
	lines, err := csv.NewReader(strings.NewReader(browser.Eval[string](p, "window.saved"))).ReadAll()
	if err != nil || len(lines) != 105 {
		t.Fatalf("%d lines, %v; want one for each row, and the first", len(lines), err)
	}
	seen := map[string]bool{}
	for _, cells := range lines {
		for _, cell := range cells {
			seen[cell] = true
			if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
				t.Errorf("a cell is a formula: %q", cell)
			}
		}
	}
	for _, want := range []string{"retry_after", "search:x-user=alice", "192.0.2.7", "shadow", `'=HYPERLINK("http://x.example/","y")`, "<img src=x onerror=alert(1)>"} {
		if !seen[want] {
			t.Errorf("no cell is %q", want)
		}
	}
}

// The cells of a row appear as plain text.
func violationsHostile(t *testing.T, site *browser.Site) {
	p := browser.Open(t, browser.Phone, browser.Dark)
	p.Remember(browser.OperateToken)
	p.Goto(site.Page("violations?range=1h"))
	p.Poll("rows are shown", shownRows+" === 7")
	p.WaitText(".vio-table", "<img src=x onerror=alert(1)>")
	p.WaitText(".vio-table", `\u202etxet\u0007`)
	browser.Eval[bool](p, "document.querySelectorAll('.vio-toggle').forEach((b) => b.click()), true")
	p.CheckNoOverflow()
	p.Axe()
	if n := browser.Eval[int](p, "document.querySelectorAll('main img, main script, main [onerror]').length"); n != 0 {
		t.Errorf("%d elements were made of what a row says", n)
	}
	p.Goto(site.Page("violations?rule=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&endpoint=%22%3E%3Cscript%3E&key=__proto__"))
	p.WaitText("main", "No denials match")
	p.Tolerate("status of 400")
	p.Goto(site.Page("violations?address=%3Cscript%3Ealert(2)%3C/script%3E"))
	p.WaitText("#vio-address-wrong", "neither an address nor a network")
}

// A user with the read role sees no names, and the page explains how to see them.
func violationsMasked(t *testing.T, site *browser.Site) {
	p := browser.Open(t, browser.Phone, browser.Light)
	p.Remember(browser.ReadToken)
	p.Goto(site.Page("violations?range=15m"))
	p.Poll("rows are shown", shownRows+" === 4")
	p.WaitText(".vio-masked", "you need the role operate")
	if text := p.Text("main"); strings.Contains(text, "alice") || strings.Contains(text, "192.0.2.7") || strings.Contains(text, "shoes") || !strings.Contains(text, "192.0.2.0/24") {
		t.Errorf("who may only look sees %s", text)
	}
	p.Axe()
	p.Screenshot("violations-masked")
	p.Tolerate("status of 403")
	p.Goto(site.Page("violations?user=alice"))
	p.Wait("dialog", "Sign in")
	p.In("dialog[open]").Fill("Token", browser.OperateToken)
	p.In("dialog[open]").Click("button", "Sign in")
	p.Poll("her rows are shown", shownRows+" === 2")
}

// Without a database the page explains how to configure one.
func TestViolations_Unconfigured(t *testing.T) {
	t.Parallel()
	site := browser.Serve(t, auditedPolicy)
	browser.Each(t, func(t *testing.T, size browser.Size, theme browser.Theme) {
		p := browser.Open(t, size, theme)
		p.Remember(browser.ReadToken)
		p.Goto(site.Page("violations"))
		p.WaitText("main", "mete serve --violations postgres://mete@HOST/DATABASE")
		p.Axe()
		p.CheckNoOverflow()
		p.Screenshot("violations-unconfigured")
	})
}
