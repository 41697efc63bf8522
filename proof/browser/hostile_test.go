// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/proof/browser"
	"github.com/metehq/mete/proof/meted"
)

// hostileValues are attribute values of malicious clients.
var hostileValues = []string{
	`<script>alert(1)</script>`,
	`"><img src=x onerror=alert(2)>`,
	`'-alert(3)-'`,
	`javascript:alert(4)`,
	`<svg/onload=alert(5)>`,
	`{{constructor.constructor('alert(6)')()}}`,
	`&lt;img src=x onerror=alert(7)&gt;`,
	`%3Cscript%3Ealert(8)%3C/script%3E`,
	"__proto__", "constructor", "toString",
	"rtl \u202egnp.exe\u2066", "zero\u200bwidth\ufeff\u00ad", "line\nbreak\ttab", "\x1b[31mred\x07", "null\x00byte", "\u0085\u2028\u2029",
	"z" + strings.Repeat("\u0301", 20), "\U000e0001\U000e0041tag", "\U0001f468\u200d\U0001f469\u200d\U0001f467",
	strings.Repeat("A", 10<<10), strings.Repeat("<b>", 3<<10), strings.Repeat("\u202e", 3000),
	"", " ", "日本語", "עברית", "العربية",
}

// hostileBytes are not valid in JSON, so clients send them in header fields.
var hostileBytes = []string{"\xff\xfe\x80", "a\xc0\xafb", "\xed\xa0\x80", "cut\xe2\x80", "<img src=x onerror=alert(9)>\xff"}

// infestedPolicy names its rules as badly as a policy can.
const infestedPolicy = `rules:
  - name: "<img src=x onerror=alert(20)>"
    description: "<script>alert(21)</script> \u202Etxet\u202C \u0007 {{alert(22)}} &lt;b&gt;"
    limit_keys: ["header:x-user"]
    algorithm: token_bucket
    algorithm_config: {rate: 1/1h, burst: 2}
  - name: "__proto__"
    description: "javascript:alert(23)"
    group: other
    limit_keys: ["path"]
    match: {"header:x-kind": ["<svg onload=alert(24)>", "\u202Eevil", "*"]}
    algorithm: fixed_window
    algorithm_config: {tokens: 3, window: 1h}
  - name: "constructor"
    limit_keys: []
    mode: shadow
    algorithm: token_bucket
    algorithm_config: {rate: 1/1h, burst: 1}
`

// checkInert fails the test if client input became markup, is hidden, or changes how the page reads.
func checkInert(t *testing.T, page *browser.Page, where string) {
	t.Helper()
	const look = `(() => {
		const found = [];
		for (const e of document.querySelectorAll('*')) {
			for (const a of e.attributes) {
				if (a.name.startsWith('on')) found.push('a handler: ' + e.outerHTML.slice(0, 200));
				if (a.value.length > 1000 && !['d', 'points', 'href', 'value'].includes(a.name)) found.push('long ' + a.name + ' of ' + e.tagName);
				if (/^\s*javascript:/i.test(a.value) && ['href', 'src', 'action'].includes(a.name)) found.push('a link that is a script: ' + a.value);
			}
		}
		if (document.querySelector('img[src="x"], #main script, body > script, iframe, object, embed, base, b')) found.push('an element of theirs');
		const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff]/;
		const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		for (let n = walker.nextNode(); n; n = walker.nextNode()) {
			const at = n.data.search(unseen);
			if (at >= 0) found.push('what cannot be seen: ' + JSON.stringify(n.data.slice(Math.max(0, at - 20), at + 20)) + ' in ' + n.parentElement.outerHTML.slice(0, 100));
			if (n.data.length > 4000) found.push('a text of ' + n.data.length + ' characters in ' + n.parentElement.tagName);
		}
		if (Object.prototype.hasOwnProperty('0') || ({}).polluted) found.push('the prototype is changed');
		return found;
	})()`
	for _, found := range browser.Eval[[]string](page, look) {
		t.Errorf("%s: %s", where, found)
	}
	page.CheckNoOverflow()
}

// startHostileSite is a site with hostile clients and a hostile policy. It forwards to an upstream to also get
// bytes that are invalid in JSON.
func startHostileSite(t *testing.T) (site *browser.Site, keys []string) {
	t.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(upstream.Close)
	site = browser.Serve(t, infestedPolicy, "upstream: "+upstream.URL+"\n")
	taken := 0
	for _, value := range hostileValues {
		for range 4 {
			status, _ := site.Ask(http.MethodPost, site.AdminURL+"/v1/take?status=429", browser.OperateToken,
				map[string]any{"attributes": map[string]string{"header:x-user": value, "header:x-kind": value, "path": "/" + strings.TrimSpace(value)}})
			if status == http.StatusTooManyRequests {
				taken++
			} else if status >= 500 {
				t.Errorf("%q is answered with %d", value, status)
			}
		}
	}
	if taken < len(hostileValues)/2 {
		t.Errorf("%d of %d values are denied: the rest is refused, want most to be taken", taken, len(hostileValues))
	}
	for _, value := range hostileBytes {
		for range 4 {
			sendRaw(t, site.Addr, value)
		}
	}
	_, answer := site.Ask(http.MethodGet, site.AdminURL+"/v1/top?limit=100", browser.OperateToken, nil)
	var top struct {
		Keys []struct{ Key string }
	}
	if err := json.Unmarshal([]byte(answer), &top); err != nil || len(top.Keys) == 0 {
		t.Fatalf("the keys that are denied: %v: %s", err, answer)
	}
	for _, k := range top.Keys {
		keys = append(keys, k.Key)
	}
	return site, keys
}

// sendRaw sends a request with a value as it is.
func sendRaw(t *testing.T, addr, value string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(meted.Patience)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /raw HTTP/1.1\r\nHost: %s\r\nX-User: %s\r\nX-Kind: %s\r\nConnection: close\r\n\r\n", addr, value, value)
	answer := make([]byte, 12)
	if _, err := conn.Read(answer); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 ") {
		t.Errorf("%q is answered with %q, %v", value, answer, err)
	}
}

func TestHostile(t *testing.T) {
	t.Parallel()
	site, keys := startHostileSite(t)
	runTogether(t, site, part{"pages", hostilePages}, part{"pasted", hostilePasted},
		part{"keys", func(t *testing.T, site *browser.Site) { hostileKeyPages(t, site, keys) }})
}

// Pages show the names of clients and rules as plain text, whatever they contain.
func hostilePages(t *testing.T, site *browser.Site) {
	for size, theme := range map[browser.Size]browser.Theme{browser.Desktop: browser.Light, browser.Phone: browser.Dark} {
		page := browser.Open(t, size, theme)
		page.Remember(browser.OperateToken)
		page.Tolerate("status of 404") // there is no such rule
		for _, r := range []struct{ route, heading, text string }{
			{"overview", "Overview", "__proto__"},
			{"rules", "Rules", "<img src=x onerror=alert(20)>"},
			{"rules/" + url.PathEscape("<img src=x onerror=alert(20)>"), "Rules", `\u202etxet`},
			{"rules/__proto__", "Rules", "javascript:alert(23)"},
			{"rules/" + url.PathEscape(hostileValues[1]), "Rules", ""},
			{"keys", "Keys", "<script>alert(1)</script>"},
			{"keys?kind=shadow", "Keys", ""},
			{"keys?kind=overrides", "Keys", ""},
			{"keys?kind=" + url.QueryEscape(hostileValues[1]) + "&rule=" + url.QueryEscape(hostileValues[0]), "Keys", ""},
			{"explain?rule=" + url.QueryEscape("<img src=x onerror=alert(20)>"), "Explain", ""},
			{"playground?s=" + url.QueryEscape(hostileValues[0]), "Playground", ""},
			{url.PathEscape(hostileValues[1]), "Page not found", ""},
		} {
			await(page, site.Page(r.route), r.heading)
			page.WaitText("#main", r.text)
			checkInert(t, page, r.route)
			page.Screenshot("hostile-" + r.route[:min(len(r.route), 30)])
		}
	}
}

// The page of each key only shows it, too.
func hostileKeyPages(t *testing.T, site *browser.Site, keys []string) {
	page := browser.Open(t, browser.Phone, browser.Light)
	page.Remember(browser.OperateToken)
	for _, key := range keys {
		page.Goto(site.Page("key?key=" + url.QueryEscape(key)))
		page.Poll("the key is there", "document.querySelector('#main .page')?.innerText.trim().length > 20 && location.hash.includes('key?')")
		checkInert(t, page, "key "+key)
	}
	page.Screenshot("hostile-key")
}

// Pasted text is parsed and shown as plain text.
func hostilePasted(t *testing.T, site *browser.Site) {
	page := browser.Open(t, browser.Desktop, browser.Dark)
	page.Remember(browser.OperateToken)
	page.Tolerate("status of 400", "status of 413", "status of 422") // where it cannot be read
	await(page, site.Page("explain"), "Explain")
	for _, text := range pasted() {
		page.Fill("Paste a request", text)
		page.Click("button", "Parse and explain")
		page.Poll("it is answered", "document.querySelector('.request-form .notice, .explain-result')?.innerText.trim().length > 0")
		checkInert(t, page, "explain "+text[:min(len(text), 60)])
	}
	page.Screenshot("hostile-explained")

	await(page, site.Page("playground"), "Playground")
	page.Click("DisclosureTriangle", "Change the traffic*")
	page.Fill("Phase 1", "trace")
	for _, text := range pasted() {
		page.Fill("Lines of an access log, or JSON lines", text)
		page.Poll("it is run, or refused", "!document.querySelector('#main [aria-busy=true]')")
		checkInert(t, page, "playground "+text[:min(len(text), 60)])
	}
	page.Screenshot("hostile-played")
}

// pasted are texts that hold the hostile values, one by one and together.
func pasted() []string {
	curl, lines, traces := "curl", "", ""
	for i, value := range hostileValues {
		if len(value) < 100 {
			curl += fmt.Sprintf(" -H 'X-%d: %s'", i, strings.ReplaceAll(value, "'", `'\''`))
			lines += fmt.Sprintf("header:x-user-%d=%s\n", i, value)
		}
		traces += fmt.Sprintf("{\"at\": %d.5, \"path\": %s, \"headers\": {\"x-user\": %[2]s}}\n", i, browser.JS(value))
	}
	long := strings.Repeat("A", 10<<10)
	return []string{
		curl + " 'https://example.com/<script>alert(30)</script>?q=\"><img src=x onerror=alert(31)>'",
		lines, traces, hostileValues[0], hostileValues[1], "curl " + hostileValues[1] + " --\u202Ehtap",
		"curl -H 'x-user: " + long + "' https://example.com/" + long, "GET /" + hostileValues[0] + " HTTP/1.1\nHost: " + hostileValues[1] + "\n",
	}
}
