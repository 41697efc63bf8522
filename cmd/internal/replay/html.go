// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strconv"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/cmd/internal/prose"
	limits "github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/internal/ui"
	"github.com/metehq/mete/policy"
)

// What pages show at most.
const (
	maxPageRules = 100
	maxPageKeys  = 25
)

var (
	//go:embed page/page.html
	pageHTML string

	//go:embed page/page.css
	pageCSS string

	//go:embed page/page.js
	pageJS string
)

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// A page is a report in HTML that stands alone: it asks for nothing else, and says all
// of it without scripts. All text is for people; nothing in it is invisible.
type page struct {
	Title, Kind, Headline string
	Facts                 []pageFact
	Tiles                 []pageTile
	Figures               []*figure

	Rules     []pageRule   // of one policy
	Changes   []pageChange // of two
	Shadow    bool         // those have rules in shadow
	RulesLeft string       // how many are not shown

	Keys  []pageKeys
	Waits []pageWait

	Policy                  []pageWords
	PolicyTitle, PolicyLeft string
	Notes                   []string

	// What the page is made with.
	CSP    string
	Style  template.CSS
	Script template.JS
	Data   template.JS
}

type (
	pageFact struct{ Name, Text string }
	pageTile struct{ Name, Colour, Value, Share, Note string }
	pageRule struct {
		Name, Mode, Requests, Denied, Share, First, Last string
		Bar                                              pageBar
		Spark                                            spark
	}
	pageChange struct {
		Name, Edit, DeniedOld, DeniedNew, Limited, Admitted, ShadowOld, ShadowNew string
		Spark                                                                     spark
	}
	pageKeys struct {
		ID, Title, About string
		Examples         bool
		Rows             []pageKey
	}
	pageKey struct {
		Key, Rule, Count, Share, First, Last, Example string
		Bar                                           pageBar
	}
	pageWait struct {
		Name, Count, Share string
		Bar                pageBar
	}
	pageWords struct {
		Name, Mode, Edit, About, Keys string
		Match                         []pageClause
		Limits                        []string
	}
	pageClause struct{ Attribute, Wants string }
	pageBar    struct{ Colour, Percent string }
)

// write writes the page.
func (p *page) write(w io.Writer) error {
	style, err := ui.Style("uplot/uPlot.min.css", "base.css")
	if err != nil {
		return err
	}
	script, err := ui.Script(pageJS, "uplot/uPlot.iife.min.js")
	if err != nil {
		return err
	}
	data, err := json.Marshal(map[string]any{"figures": p.Figures}) // <, >, & and the line separators are escaped
	if err != nil {
		return err
	}
	p.Style, p.Script, p.Data = template.CSS(style+pageCSS), template.JS(script), template.JS(data)
	p.CSP = fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; form-action 'none'",
		hash(string(p.Script)), hash(string(p.Style)))
	return pageTemplate.Execute(w, p)
}

// hash is what a content security policy knows a block by.
func hash(block string) string {
	sum := sha256.Sum256([]byte(block))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// grouped formats n with a comma between thousands.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && n > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// requestCount counts requests for people.
func requestCount(n int64) string {
	if n == 1 {
		return "1 request"
	}
	return grouped(n) + " requests"
}

func barOf(n, all int64, colour string) pageBar {
	part := 0.0
	if n > 0 {
		part = max(100*float64(n)/float64(all), 1)
	}
	return pageBar{colour, strconv.FormatFloat(part, 'f', 1, 64)}
}

// traceFacts say what was replayed.
func traceFacts(trace, format string, requests span, o *order) []pageFact {
	if requests.count == 0 {
		return []pageFact{{"Trace", display.Inert(trace) + ", " + format}}
	}
	times := instant(requests.first, requests.last) + " to " + instant(requests.last, requests.last)
	facts := []pageFact{{"Trace", display.Inert(trace) + ", " + format}, {"Time", times + ", " + lasting(requests.last-requests.first)}}
	if text := o.warning(requests.count); text != "" {
		facts = append(facts, pageFact{"Warning", text})
	}
	return facts
}

// keysOf is a table of the most frequent keys, of all so many requests.
func keysOf(t pageKeys, list *toplist, all int64, colour func(rule string) string, names *keyNames, instant func(bucket.Instant) string) pageKeys {
	for _, entry := range list.top(maxPageKeys) {
		row := pageKey{Key: display.Inert(names.of(entry)), Rule: entry.rule, Count: grouped(entry.count), Share: percent(entry.count, all),
			First: instant(entry.first), Last: instant(entry.last), Bar: barOf(entry.count, all, colour(entry.rule)), Example: display.Inert(entry.place)}
		if names.show && entry.request != "" {
			row.Example += " " + display.Inert(entry.request)
		}
		t.Rows = append(t.Rows, row)
	}
	t.About = "the keys with the most requests"
	if n := int64(len(list.tallies)); n <= maxPageKeys {
		t.About = prose.Count(n, "key")
	} else if list.missed == 0 {
		t.About = fmt.Sprintf("the first %d of %s keys", maxPageKeys, grouped(n))
	}
	return t
}

// words says what the rules of a policy are, in words; edits what was done to them.
// Only so many of them are there.
func words(m *policy.Matcher, edits map[string]string) (list []pageWords, left string) {
	rules, descriptions := m.Rules(), m.Describe()
	for i, r := range rules[:min(len(rules), maxPageRules)] {
		w := pageWords{Name: r.Name, Mode: prose.Mode(r), Edit: edits[r.Name], About: display.Inert(r.Description), Keys: keyWords(r)}
		for _, c := range descriptions[i].Match {
			w.Match = append(w.Match, pageClause{display.Inert(c.Attribute.String()), display.Inert(c.Wants)})
		}
		for j := range r.Limits {
			w.Limits = append(w.Limits, limits.Limit(&r.Limits[j]))
		}
		list = append(list, w)
	}
	if len(rules) > maxPageRules {
		left = fmt.Sprintf("the first %d of %s", maxPageRules, prose.Count(len(rules), "rule"))
	}
	return list, left
}

// keyWords says who shares a bucket of the rule.
func keyWords(r *policy.Rule) string {
	if len(r.LimitKeys) == 0 {
		return "One bucket for all requests"
	}
	text := "A bucket for each "
	for i, a := range r.LimitKeys {
		if i > 0 {
			text += " and "
		}
		text += display.Inert(a.Spelled())
	}
	return text
}
